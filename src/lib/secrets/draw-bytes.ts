/** Random bytes in small portions, for ids and nonces. */
import { randomFillSync } from 'node:crypto'

/** Bytes are drawn from the system this many at a time: a call for each portion takes over ten times as long. */
const AT_ONCE = 4096

const drawn = Buffer.allocUnsafeSlow(AT_ONCE)
let at = AT_ONCE

/** Not for keys and tokens, which should not be in memory before they are needed. */
export function drawBytes(count: number): Buffer {
  const from = draw(count)
  // A copy, because later bytes are drawn into the same memory.
  return Buffer.from(drawn.subarray(from, from + count))
}

/** Hexadecimal, with two characters for each byte. */
export function drawHex(count: number): string {
  const from = draw(count)
  return drawn.toString('hex', from, from + count)
}

/** Draws bytes, and returns where in `drawn` they are. */
function draw(count: number): number {
  // Returning fewer bytes than requested would be worse.
  if (count > AT_ONCE) throw new RangeError(`at most ${AT_ONCE} bytes are drawn at once`)
  if (at + count > AT_ONCE) {
    randomFillSync(drawn)
    at = 0
  }
  at += count
  return at - count
}
