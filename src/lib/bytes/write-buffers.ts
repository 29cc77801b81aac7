/** A pool of buffers for collecting bytes: borrowed, filled, written to a socket, and returned once sent. */

export class WriteBuffers {
  readonly #bytes: number
  readonly #spares: number
  readonly #spare: Buffer[] = []

  /** Each stage has `bytes`; at most `spares` unused ones are kept. */
  constructor({ bytes, spares }: { bytes: number; spares: number }) {
    this.#bytes = bytes
    this.#spares = spares
  }

  borrow(): Buffer {
    return this.#spare.pop() ?? Buffer.allocUnsafeSlow(this.#bytes)
  }

  /** Returns `stage` to the pool; the caller must not use it afterwards. */
  giveBack(stage: Buffer): void {
    if (this.#spare.length < this.#spares) this.#spare.push(stage)
  }
}
