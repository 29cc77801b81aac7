/** A hex dump: offset, bytes, characters. */

const LINE_BYTES = 16

/**
 * The first `most` bytes of `base64`, as lines of sixteen: `00000010  48 69 00 …  Hi.…`. Only they are decoded; `left` is how
 * many bytes were left out.
 */
export function hexLines(base64: string, most: number) {
  const size = Math.floor((base64.replace(/=+$/, '').length * 3) / 4)
  const bytes = atob(base64.slice(0, Math.ceil(most / 3) * 4)).slice(0, most)
  const lines: string[] = []
  for (let at = 0; at < bytes.length; at += LINE_BYTES) lines.push(hexLine(bytes.slice(at, at + LINE_BYTES), at))
  return { lines, left: size - bytes.length }
}

/** Each character of `bytes` is a byte. */
function hexLine(bytes: string, at: number): string {
  const numbers = Array.from(bytes, (byte) => byte.charCodeAt(0).toString(16).padStart(2, '0')).join(' ')
  const letters = bytes.replace(/[^ -~]/g, '.')
  return `${at.toString(16).padStart(8, '0')}  ${numbers.padEnd(LINE_BYTES * 3 - 1)}  ${letters}`
}
