/** Memory that bytes are gathered in before they leave: borrowed, filled, given to a socket, and given back once sent. */

export class Stages {
  readonly #bytes: number
  readonly #spares: number
  readonly #spare: Buffer[] = []

  /** Each of `bytes`; as many as `spares` are kept while nobody needs them. */
  constructor({ bytes, spares }: { bytes: number; spares: number }) {
    this.#bytes = bytes
    this.#spares = spares
  }

  borrow(): Buffer {
    return this.#spare.pop() ?? Buffer.allocUnsafeSlow(this.#bytes)
  }

  /** Nobody may look at it any more. */
  giveBack(stage: Buffer): void {
    if (this.#spare.length < this.#spares) this.#spare.push(stage)
  }
}
