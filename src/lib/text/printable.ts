/** Makes untrusted text safe to show on a terminal: control characters become visible escapes. */

// Control characters (C0, DEL, C1) steer a terminal; the bidirectional marks reorder what a reader sees.
const steering = /[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

const short: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

/** `text` on one line, without anything that controls a terminal. */
export function printable(text: string): string {
  return text.replace(steering, (c) => short[c] ?? `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
