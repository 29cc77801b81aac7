/** Says which bytes may occur where in a head, by one table of bits, so that a scan costs one lookup per byte. */

export const TAB = 0x09
export const LF = 0x0a
export const CR = 0x0d
export const SPACE = 0x20
export const COLON = 0x3a
export const DELETE = 0x7f

const IN_TOKEN = 1
const IN_TARGET = 2

// Neither the table nor its bits are exported: scans call functions, which V8 inlines. An import that is not a function is loaded
// again for every byte, which took a fifth of the time for a head.
const bits = fill()

/** RFC 9110 §5.6.2: token. */
export function inToken(byte: number): boolean {
  return ((bits[byte] ?? 0) & IN_TOKEN) !== 0
}

/**
 * Request targets. Narrower than what some servers accept, wider than RFC 3986: browsers leave `|` and `{` unescaped.
 * Not `#` nor bytes above ASCII, which one server cuts off or decodes and the next does not.
 */
export function inTarget(byte: number): boolean {
  return ((bits[byte] ?? 0) & IN_TARGET) !== 0
}

/** RFC 9110 §5.5: field-value, with inner whitespace. Most bytes of a head come here: two comparisons are faster. */
export function inValue(byte: number): boolean {
  return byte >= 0x20 ? byte !== 0x7f : byte === 0x09
}

function fill(): Uint8Array {
  const table = new Uint8Array(256)
  for (let byte = 0; byte < table.length; byte++) {
    const character = String.fromCharCode(byte)
    const isVisible = byte > 0x20 && byte < 0x7f
    table[byte] =
      (/[!#$%&'*+.^_`|~0-9A-Za-z-]/.test(character) ? IN_TOKEN : 0) | (isVisible && character !== '#' ? IN_TARGET : 0)
  }
  return table
}
