/** A pool of buffers in which bytes are gathered: borrowed, filled, given to a socket, and given back once sent. */

export class Stages {
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

  /** Nobody may use `stage` after this. */
  giveBack(stage: Buffer): void {
    if (this.#spare.length < this.#spares) this.#spare.push(stage)
  }
}
