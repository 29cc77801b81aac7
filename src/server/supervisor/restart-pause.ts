/** The pause before a child that ended is started again: none the first time, longer each time after. */

/** The pause after the second death, in milliseconds; it doubles from there. */
const FIRST_PAUSE_MS = 500

const MAX_PAUSE_MS = 30_000

/** A child that has lived this long, in milliseconds, starts with a clean record. */
const FORGOTTEN_MS = 60_000

export class RestartPause {
  #deaths = 0

  /** The pause after a life of `livedMs`, in milliseconds. */
  after(livedMs: number): number {
    if (livedMs >= FORGOTTEN_MS) this.#deaths = 0
    const earlier = this.#deaths++
    return earlier === 0 ? 0 : Math.min(FIRST_PAUSE_MS * 2 ** (earlier - 1), MAX_PAUSE_MS)
  }
}
