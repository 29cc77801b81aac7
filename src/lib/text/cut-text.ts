/** Cuts text from outside to a limit, so that one request cannot fill a log. */

/** How much of a text from outside is logged, in bytes of UTF-8. */
export const MAX_LOGGED_BYTES = 2048

const MARK = '…'
const MARK_BYTES = Buffer.byteLength(MARK)

/** The most UTF-8 bytes for one character of a string. */
const MAX_BYTES_PER_CHARACTER = 3

/** `text` itself, or as much of it as fits into `maxBytes` with a mark at the end. */
export function cutText(text: string, maxBytes = MAX_LOGGED_BYTES): string {
  if (text.length * MAX_BYTES_PER_CHARACTER <= maxBytes || Buffer.byteLength(text) <= maxBytes) return text
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(maxBytes - MARK_BYTES))
  return text.slice(0, read) + MARK
}
