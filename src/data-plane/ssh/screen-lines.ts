/** The screen of a client, line by line: addresses, latency, connections and the last requests. */
import type { ServedRequest } from '../../model/served-request.ts'

/** Figures read from the connection when the screen is drawn. */
export interface ScreenFigures {
  /** Connections of visitors that are open. */
  readonly connections: number
  readonly bytesIn: number
  readonly bytesOut: number
  /** In milliseconds; undefined before the first measurement. */
  readonly latencyMs: number | undefined
}

interface ScreenContent {
  readonly region: string
  readonly addresses: readonly string[]
  readonly figures: ScreenFigures
  /** Connections since the start. */
  readonly total: number
  /** Newest first; safe to show. */
  readonly requests: readonly ServedRequest[]
  /** The last message to the client; `''` for none. */
  readonly note: string
  readonly rows: number
  readonly columns: number
}

export const TITLE = 'Postern (via SSH) (Ctrl+C to quit)'

/** The most addresses that are listed; of the others only their number is shown. */
const MAX_LISTED = 20

export function screenLines(content: ScreenContent): string[] {
  const { region, addresses, figures, total, requests, note, rows, columns } = content
  const { connections, bytesIn, bytesOut, latencyMs } = figures
  const listed = addresses.slice(0, MAX_LISTED)
  const more = addresses.length - listed.length
  const lines = [
    TITLE,
    '',
    row('Region', region),
    row('Latency', latencyMs === undefined ? '' : milliseconds(latencyMs)),
    ...(listed.length === 0 ? [row('Forwarding', 'waiting for a forward')] : []),
    ...listed.map((address, i) => row(i === 0 ? 'Forwarding' : '', address)),
    ...(more > 0 ? [row('', `and ${more} more`)] : []),
    row('Connections', `${total} total, ${connections} open`),
    row('Traffic', `${size(bytesOut)} to you, ${size(bytesIn)} from you`),
    ...(note === '' ? [] : ['', ...wrapText(note, columns)]),
  ]
  // Below a blank line and a heading.
  const room = rows - lines.length - 2
  if (requests.length > 0 && room > 0) lines.push('', 'Requests', ...requests.slice(0, room).map(requestLine))
  return lines.slice(0, rows).map((line) => line.slice(0, columns))
}

/** One row with a name and a value, on the screen and in plain lines. */
export function row(name: string, value: string): string {
  return `${name.padEnd(12)}${value}`
}

function requestLine({ method, path, status, durationMs }: ServedRequest): string {
  return `${status === 0 ? '...' : status} ${milliseconds(durationMs).padStart(9)}  ${method.padEnd(7)} ${path}`
}

/** Wraps text at words. */
function wrapText(text: string, columns: number): string[] {
  const lines = ['']
  for (const word of text.split(' ')) {
    const line = lines.at(-1) ?? ''
    if (line === '') lines[lines.length - 1] = word
    else if (line.length + 1 + word.length <= columns) lines[lines.length - 1] = `${line} ${word}`
    else lines.push(word)
  }
  return lines
}

function milliseconds(ms: number): string {
  return ms < 10 ? `${ms.toFixed(1)} ms` : ms < 10_000 ? `${Math.round(ms)} ms` : `${Math.round(ms / 1000)} s`
}

function size(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`
  const [unit, digits] = bytes < 1e6 ? ['kB', bytes / 1e3] : bytes < 1e9 ? ['MB', bytes / 1e6] : ['GB', bytes / 1e9]
  return `${digits.toFixed(1)} ${unit}`
}
