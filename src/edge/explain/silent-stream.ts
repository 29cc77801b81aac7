/** A stream in a dry run: nobody is at its other end, and it closes as soon as somebody listens. */
import type { ByteSink, ByteStream } from '../../lib/bytes/byte-stream.ts'

export class SilentStream implements ByteStream {
  #isClosed = false

  write(): boolean {
    return true
  }

  end(): void {}

  reset(): void {}

  attach(sink: ByteSink): void {
    setImmediate(() => {
      if (this.#isClosed) return
      this.#isClosed = true
      sink.end()
      sink.closed(undefined)
    })
  }

  pause(): void {}

  resume(): void {}
}
