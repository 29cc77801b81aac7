/** A stream in a dry run: it has no other end, and closes as soon as it gets a sink. */
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
