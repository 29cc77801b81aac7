/** Which bytes may stand where in a head: one table of bits, so that a scan costs one look for each byte. */

/** RFC 9110 §5.6.2: token. */
export const TOKEN = 1
/** RFC 9110 §5.5: field-value, with the blanks inside. */
export const VALUE = 4
/**
 * Request targets. Narrower than what some servers take, wider than RFC 3986: browsers leave `|` and `{` as they are.
 * Not `#` nor bytes above ASCII, which one server cuts off or decodes where the next does not.
 */
export const TARGET = 8

export const TAB = 0x09
export const LF = 0x0a
export const CR = 0x0d
export const SPACE = 0x20
export const COLON = 0x3a
export const DELETE = 0x7f

export const characters: Uint8Array = fill()

function fill(): Uint8Array {
  const bits = new Uint8Array(256)
  for (let byte = 0; byte < bits.length; byte++) {
    const character = String.fromCharCode(byte)
    const isVisible = byte > SPACE && byte < DELETE
    bits[byte] =
      (/[!#$%&'*+.^_`|~0-9A-Za-z-]/.test(character) ? TOKEN : 0) |
      (isVisible || byte === SPACE || byte === TAB || byte > DELETE ? VALUE : 0) |
      (isVisible && character !== '#' ? TARGET : 0)
  }
  return bits
}
