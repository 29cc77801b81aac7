/** The names and values that HTTP allows in headers. */

/** RFC 9110 §5.6.2: token. */
export function isHeaderName(name: string): boolean {
  return /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name)
}

/** RFC 9110 §5.5. Refuses every control character but the tab, not only CR, LF and NUL: HTTP clients refuse them all. */
export function isHeaderValue(value: string): boolean {
  return !/(?!\t)\p{Cc}/u.test(value)
}

/**
 * RFC 9110 §5.5, for values held as one character a byte. A character above 255 would be cut to its low byte when sent,
 * which could be CR or LF.
 */
export function isFieldContent(value: string): boolean {
  return !unfit.test(value)
}

const unfit = /[^\t\x20-\x7e\x80-\xff]/

/**
 * Text as a header value: control characters are left out, and text beyond ASCII becomes UTF-8, held as one character a
 * byte. A character above 255, cut to its low byte, could become a line break.
 */
export function toHeaderValue(text: string): string {
  if (/^[\t\x20-\x7e]*$/.test(text)) return text
  return Buffer.from(text.replace(/(?!\t)\p{Cc}/gu, ''), 'utf8').toString('latin1')
}

/** Headers that frame the message or belong to one connection (RFC 9110 §7.6.1); a proxy writes its own. */
export function isConnectionHeader(name: string): boolean {
  const lower = name.toLowerCase()
  return connectionHeaders.has(lower) || lower.startsWith('proxy-')
}

const connectionHeaders: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  // `100 Continue` comes before the body, so a proxy that forwards bodies answers it itself.
  'expect',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])
