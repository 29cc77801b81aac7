/** Gathers changes, and has them sent a little later or at once. */

/** How long a change may wait before it is sent to other planes, in milliseconds. */
export const GATHER_MS = 50

export class GatheredChanges {
  readonly #send: () => void
  #timer: NodeJS.Timeout | undefined
  #turn: NodeJS.Immediate | undefined

  constructor(send: () => void) {
    this.#send = send
  }

  /** Has changes sent soon. */
  soon(): void {
    this.#timer ??= setTimeout(() => this.now(), GATHER_MS).unref()
  }

  /** Has changes sent when this turn of the event loop is over. */
  thisTurn(): void {
    this.#turn ??= setImmediate(() => this.now())
  }

  now(): void {
    this.close()
    this.#send()
  }

  /** Cancels what was to be sent soon. */
  close(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    clearImmediate(this.#turn)
    this.#turn = undefined
  }
}
