/** What a terminal shows after some text was sent to it: enough of a terminal to tell whether a line was erased. */

const ESCAPE = String.fromCharCode(27)
/** A sequence that begins with ESC, or a character. */
const TOKEN = new RegExp(`${ESCAPE}\\[([\\d;?]*)([A-Za-z])|.`, 'gsu')

/** The screen, line by line. Sequences other than moves in a line and erasures are errors, so that none is missed. */
export function screenOf(sent: string): string[] {
  const lines: string[][] = [[]]
  let [row, column] = [0, 0]
  const line = (): string[] => (lines[row] ??= [])
  for (const [token, parameter, end] of sent.matchAll(TOKEN)) {
    if (token === '\r') column = 0
    else if (token === '\n') row += 1
    else if (end === 'G') column = Number(parameter || 1) - 1
    else if (end === 'K') line().length = Math.min(line().length, column)
    else if (end === 'J') {
      line().length = Math.min(line().length, column)
      lines.length = Math.min(lines.length, row + 1)
    } else if (end !== undefined) throw new Error(`this terminal does not know ${JSON.stringify(token)}`)
    else {
      const cells = line()
      while (cells.length < column) cells.push(' ')
      cells[column++] = token
    }
  }
  return lines.map((cells) => (cells ?? []).join('').trimEnd())
}
