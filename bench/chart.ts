/** Draws the results as an SVG chart, with one panel for each row and one bar for each lane. */
import type { Result } from './result.ts'
import { grouped } from './table.ts'

const WIDTH = 900
const MARGIN = 20
const NAMES = 250
const BAR = { left: MARGIN + NAMES, width: 330, height: 16, step: 22 }
/** A gap near the end of a bar that is too long to draw. */
const BREAK = { from: 16, width: 5, height: 16 }
const PANEL_HEAD = 34
const PANEL_GAP = 18
const FOOT_LINE = 14
/** Lines of the foot are wrapped at this many characters. */
const FOOT_COLUMNS = 145

const colours = {
  paper: '#ffffff',
  ours: '#2f6f4f',
  base: '#8a8f98',
  other: '#c3c7cd',
  mark: '#b3402a',
  text: '#1d2125',
  soft: '#5b6168',
}

export interface Panel {
  readonly title: string
  readonly results: readonly Result[]
}

export function chart(panels: readonly Panel[], foot: readonly string[]): string {
  const shown = panels.filter(({ results }) => results.length > 0)
  const parts: string[] = []
  let y = MARGIN
  for (const panel of shown) {
    parts.push(...drawPanel(panel, y))
    y += PANEL_HEAD + panel.results.length * BAR.step + PANEL_GAP
  }
  for (const line of foot.flatMap(wrapped)) {
    y += FOOT_LINE
    parts.push(text(MARGIN, y, line, { size: 11, fill: colours.soft }))
  }
  const height = y + MARGIN
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif">
<rect width="100%" height="100%" fill="${colours.paper}"/>
${parts.join('\n')}
</svg>
`
}

function drawPanel({ title, results }: Panel, top: number): string[] {
  // `direct`, which no tunnel reaches, does not count: it would make all other bars tiny.
  const scale = Math.max(...results.filter(({ cpu }) => cpu !== null).map(({ speed }) => speed), Number.MIN_VALUE)
  const parts = [text(MARGIN, top + 14, title, { size: 14, fill: colours.text, bold: true })]
  results.forEach((result, i) => {
    const y = top + PANEL_HEAD + i * BAR.step - BAR.height / 2
    const baseline = y + BAR.height - 4
    const length = Math.min(1, result.speed / scale) * BAR.width
    parts.push(text(MARGIN, baseline, `${result.name} (${result.link})`, { size: 12, fill: colours.text }))
    parts.push(rect({ x: BAR.left, y, width: length, height: BAR.height, fill: colourOf(result) }))
    if (result.speed > scale)
      parts.push(rect({ x: BAR.left + BAR.width - BREAK.from, y, ...BREAK, fill: colours.paper }))
    if (result.bar !== null && result.ratio !== null) {
      // Marks where the bar would end if it just met its target.
      const needed = ((result.speed / result.ratio) * result.bar) / scale
      if (needed <= 1) {
        parts.push(
          rect({
            x: BAR.left + needed * BAR.width - 1,
            y: y - 2,
            width: 2,
            height: BAR.height + 4,
            fill: colours.mark,
          }),
        )
      }
    }
    parts.push(text(BAR.left + BAR.width + 10, baseline, label(result), { size: 12, fill: colours.soft }))
  })
  return parts
}

function label({ speed, speedUnit, ratio, cpu, cpuUnit }: Result): string {
  const parts = [`${grouped(speed)} ${speedUnit}`]
  if (ratio !== null) parts.push(`${ratio.toFixed(2)}×`)
  if (cpu !== null) parts.push(`CPU ${cpu.toFixed(2)} ${cpuUnit}`)
  return parts.join(' · ')
}

function colourOf({ name, against, isOurs }: Result): string {
  if (isOurs) return colours.ours
  return name === against ? colours.base : colours.other
}

function rect({
  x,
  y,
  width,
  height,
  fill,
}: Record<'x' | 'y' | 'width' | 'height', number> & { fill: string }): string {
  return `<rect x="${x.toFixed(1)}" y="${y.toFixed(1)}" width="${width.toFixed(1)}" height="${height}" fill="${fill}"/>`
}

function text(
  x: number,
  y: number,
  content: string,
  { size, fill, bold = false }: { size: number; fill: string; bold?: boolean },
): string {
  const weight = bold ? ' font-weight="bold"' : ''
  return `<text x="${x}" y="${y.toFixed(1)}" font-size="${size}" fill="${fill}"${weight}>${escaped(content)}</text>`
}

function escaped(content: string): string {
  return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

/** Wraps a line at spaces into lines of at most `FOOT_COLUMNS`. */
function wrapped(line: string): string[] {
  return line.match(new RegExp(`.{1,${FOOT_COLUMNS}}(?=\\s|$)`, 'g'))?.map((part) => part.trim()) ?? []
}
