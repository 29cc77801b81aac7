/** Times as people read them. */

const MINUTE = 60
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** `14:03:07`, in the time of the browser. */
export function clockTime(millis: number): string {
  return new Date(millis).toLocaleTimeString('en-GB')
}

/** `2026-03-01 14:03:07`, in the time of the browser. */
export function dateTime(millis: number): string {
  return Number.isFinite(millis) ? new Date(millis).toLocaleString('sv-SE') : ''
}

/** `3 min ago`, `in 5 days`. */
export function fromNow(millis: number, now: number): string {
  if (!Number.isFinite(millis)) return ''
  const seconds = Math.round((millis - now) / 1000)
  const size = spanText(Math.abs(seconds))
  if (Math.abs(seconds) < 5) return 'just now'
  return seconds < 0 ? `${size} ago` : `in ${size}`
}

function spanText(seconds: number): string {
  if (seconds < MINUTE) return `${seconds} s`
  if (seconds < HOUR) return `${Math.floor(seconds / MINUTE)} min`
  if (seconds < 2 * DAY) return `${Math.floor(seconds / HOUR)} h`
  return `${Math.floor(seconds / DAY)} days`
}

/** `1.5 ms`, `3.2 s`; a whole number stays one. */
export function durationText(ms: number): string {
  if (ms < 10) return `${Number.isInteger(ms) ? ms : ms.toFixed(1)} ms`
  if (ms < 1000) return `${Math.round(ms)} ms`
  return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`
}

/** `512 B`, `1.5 kB`. */
export function sizeText(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB']
  let [size, unit] = [bytes, 0]
  while (size >= 1000 && unit < units.length - 1) {
    size /= 1000
    unit++
  }
  return `${unit === 0 || size >= 100 ? Math.round(size) : size.toFixed(1)} ${units[unit]}`
}
