/**
 * Random bytes in small portions, for ids and nonces, drawn from the system many at a time: a call for each portion takes more
 * than ten times as long. Not for keys and tokens, whose bytes should be nowhere before they are needed.
 */
import { randomFillSync } from 'node:crypto'

const AT_ONCE = 4096

const drawn = Buffer.allocUnsafeSlow(AT_ONCE)
let at = AT_ONCE

export function drawBytes(count: number): Buffer {
  const from = draw(count)
  // A copy: what is drawn next goes to the same place.
  return Buffer.from(drawn.subarray(from, from + count))
}

/** Two characters for each byte. */
export function drawHex(count: number): string {
  const from = draw(count)
  return drawn.toString('hex', from, from + count)
}

/** Where in `drawn` they are. */
function draw(count: number): number {
  // Fewer than were asked for would be worse.
  if (count > AT_ONCE) throw new RangeError(`at most ${AT_ONCE} bytes are drawn at once`)
  if (at + count > AT_ONCE) {
    randomFillSync(drawn)
    at = 0
  }
  at += count
  return at - count
}
