/** Gathers what changes, and calls for it to be sent a little later, or at once when much has gathered. */

/** How long a change may wait to be told to other planes, in milliseconds. */
export const GATHER_MS = 50

export class Gathering {
  readonly #send: () => void
  #timer: NodeJS.Timeout | undefined

  constructor(send: () => void) {
    this.#send = send
  }

  /** Something is there to be sent. */
  soon(): void {
    this.#timer ??= setTimeout(() => this.now(), GATHER_MS).unref()
  }

  now(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#send()
  }

  /** Sends nothing more of its own accord. */
  close(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }
}
