/** What HTTP allows as the name and the value of a header. */

/** RFC 9110 §5.6.2: token. */
export function isHeaderName(name: string): boolean {
  return /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name)
}

/** RFC 9110 §5.5. Wider than CR, LF and NUL: an HTTP client refuses to send the others as well. A tab is fine. */
export function isHeaderValue(value: string): boolean {
  return !/(?!\t)\p{Cc}/u.test(value)
}

/** RFC 9110 §5.5, as values are held: a character for each byte. One above 255 would be cut to bytes such as CR and LF. */
export function isFieldContent(value: string): boolean {
  return !unfit.test(value)
}

const unfit = /[^\t\x20-\x7e\x80-\xff]/

/**
 * Text as the value of a header: control characters are left out, and what is not ASCII becomes UTF-8, one character
 * for each byte, as values are held. A character above 255 that was cut to its low byte could be a line break.
 */
export function toHeaderValue(text: string): string {
  if (/^[\t\x20-\x7e]*$/.test(text)) return text
  return Buffer.from(text.replace(/(?!\t)\p{Cc}/gu, ''), 'utf8').toString('latin1')
}

/** Names that frame the message or belong to one connection (RFC 9110 §7.6.1); whoever forwards writes them itself. */
export function isConnectionHeader(name: string): boolean {
  const lower = name.toLowerCase()
  return connectionHeaders.has(lower) || lower.startsWith('proxy-')
}

const connectionHeaders: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  // Its answer comes before the body, so a proxy that forwards bodies answers for itself.
  'expect',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])
