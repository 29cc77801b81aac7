/** An HTTP/2 stream after its head: raw bytes, for the protocol that its visitor asked for (RFC 8441). */
import { constants, type Http2Stream } from 'node:http2'
import { type ByteSink, type ByteStream, writeLent } from '../../../lib/bytes/byte-stream.ts'
import { socketStream } from '../../../lib/bytes/socket-stream.ts'

export class StreamBytes implements ByteStream {
  readonly #stream: Http2Stream
  readonly #bytes: ByteStream
  #isReset = false
  #isEndDelivered = false

  /** `stream` must not be read before. */
  constructor(stream: Http2Stream) {
    this.#stream = stream
    this.#bytes = socketStream(stream)
  }

  write(chunk: Buffer): boolean {
    return this.#bytes.write(chunk)
  }

  writeLent(chunk: Buffer): boolean {
    return writeLent(this.#bytes, chunk)
  }

  end(): void {
    this.#bytes.end()
  }

  reset(): void {
    this.#isReset = true
    // RFC 8441 §5: what a reset is to a connection.
    this.#stream.close(constants.NGHTTP2_CANCEL)
    // A stream with unread bytes does not close.
    this.#stream.resume()
  }

  attach(sink: ByteSink): void {
    this.#bytes.attach({
      data: (chunk) => {
        if (this.#isLost) return
        try {
          sink.data(chunk)
        } catch (cause) {
          // Otherwise the stream would end with the code of a complete one.
          this.reset()
          throw cause
        }
      },
      end: () => this.#deliverEnd(sink),
      drain: () => sink.drain(),
      closed: () => {
        // Browsers reset a stream that we have ended, instead of ending it as well.
        const isWhole = !this.#isLost && this.#stream.writableFinished && this.#stream.readableLength === 0
        if (isWhole) this.#deliverEnd(sink)
        sink.closed(isWhole ? undefined : new Error('the stream was reset'))
      },
    })
  }

  pause(): void {
    this.#bytes.pause()
  }

  resume(): void {
    this.#bytes.resume()
  }

  /** A stream that was reset ends as well, as if it were complete. */
  get #isLost(): boolean {
    return this.#isReset || this.#stream.aborted
  }

  #deliverEnd(sink: ByteSink): void {
    if (this.#isLost || this.#isEndDelivered) return
    this.#isEndDelivered = true
    sink.end()
  }
}
