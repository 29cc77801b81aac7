/** Pauses and resumes a stream, calling it only for changes: the calls are not free. */
import type { ByteStream } from '../../../lib/bytes/byte-stream.ts'

export class Flow {
  readonly #stream: ByteStream
  #isOpen = true

  constructor(stream: ByteStream) {
    this.#stream = stream
  }

  set(isOpen: boolean): void {
    if (isOpen === this.#isOpen) return
    this.#isOpen = isOpen
    if (isOpen) this.#stream.resume()
    else this.#stream.pause()
  }
}
