/** How long to wait before a child that ended is started again: not at all the first time, longer each time after. */

/** The first pause that is one, in milliseconds; it doubles from there. */
const FIRST_PAUSE_MS = 500

const MAX_PAUSE_MS = 30_000

/** After a life of this length, in milliseconds, earlier deaths are forgotten. */
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
