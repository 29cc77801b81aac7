/** A plot of a few values over time: lines, and a legend with their values. */
import { useState } from 'preact/hooks'
import { nearestValue, PLOT_HEIGHT, PLOT_WIDTH, type PlotFrame, plotLine, plotTop } from './plot-line.ts'
import { clockTime } from './time-text.ts'

/** Something that has several values at a time. */
interface PlottedAt {
  readonly at: number
}

interface PlotLine<T extends PlottedAt> {
  readonly name: string
  readonly read: (point: T) => number | null
}

export interface PlotProps<T extends PlottedAt> extends Pick<PlotFrame, 'from' | 'to' | 'stepMs'> {
  readonly title: string
  readonly points: readonly T[]
  readonly lines: readonly PlotLine<T>[]
  readonly text: (value: number) => string
}

export function Plot<T extends PlottedAt>({ title, points, lines, from, to, stepMs, text }: PlotProps<T>) {
  const [position, setPosition] = useState<number>()
  const drawn = lines.map(({ name, read }) => ({
    name,
    values: points.map((point) => ({ at: point.at, value: read(point) })),
  }))
  const top = plotTop(drawn.flatMap(({ values }) => values))
  const frame = { from, to, top, stepMs }
  const pointed = position === undefined ? points.at(-1) : nearestValue(points, frame, position)
  const shown = lines.map(({ name, read }) => {
    const value = pointed ? read(pointed) : null
    return { name, value: value === null ? '–' : text(value) }
  })
  const at = pointed && position !== undefined ? ((pointed.at - from) / (to - from)) * PLOT_WIDTH : undefined
  const words = shown.map(({ name, value }) => `${name} ${value}`).join(', ')
  return (
    <figure class="card plot">
      <figcaption>
        <h3>{title}</h3>
        <ul class="legend">
          {shown.map(({ name, value }, i) => (
            <li key={name} class={`line-${i + 1}`}>
              {name} <strong>{value}</strong>
            </li>
          ))}
        </ul>
      </figcaption>
      <svg
        role="img"
        aria-label={`${title}: ${words}`}
        viewBox={`0 0 ${PLOT_WIDTH} ${PLOT_HEIGHT}`}
        preserveAspectRatio="none"
        onPointerMove={(event) => {
          const { left, width } = event.currentTarget.getBoundingClientRect()
          setPosition(Math.min(1, Math.max(0, (event.clientX - left) / width)))
        }}
        onPointerLeave={() => setPosition(undefined)}
      >
        <path class="grid" d={`M0 0H${PLOT_WIDTH}M0 ${PLOT_HEIGHT / 2}H${PLOT_WIDTH}M0 ${PLOT_HEIGHT}H${PLOT_WIDTH}`} />
        {at !== undefined && <path class="grid" d={`M${at} 0V${PLOT_HEIGHT}`} />}
        {drawn.map(({ name, values }, i) => (
          <path key={name} class={`line-${i + 1}`} d={plotLine(values, frame)} />
        ))}
      </svg>
      <p class="scale">
        <span>{clockTime(from)}</span>
        <span>{at === undefined ? `up to ${text(top)}` : clockTime(pointed?.at ?? 0)}</span>
        <span>{clockTime(to)}</span>
      </p>
    </figure>
  )
}
