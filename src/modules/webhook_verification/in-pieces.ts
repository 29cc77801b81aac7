/** Hashes a body without holding the event loop: 10 MiB would take up to 60 ms. */
import { othersTurn } from '../../lib/threads/others-turn.ts'

const PIECE_BYTES = 256 * 1024

/** Passes all of `body` to `update`, with pauses for other work. */
export async function inPieces(body: Buffer, update: (piece: Buffer) => unknown): Promise<void> {
  const breath = othersTurn()
  for (let at = 0; at < body.length; at += PIECE_BYTES) {
    update(body.subarray(at, at + PIECE_BYTES))
    const pause = breath()
    if (pause) await pause
  }
}
