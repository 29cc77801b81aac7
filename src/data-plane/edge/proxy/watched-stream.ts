/** Counts the bytes of a stream and reports its end to the owner that handed it on. */
import { type ByteSink, type ByteStream, writeLent } from '../../../lib/bytes/byte-stream.ts'

interface StreamWatch {
  /** Bytes moved in either direction. */
  readonly onMoved: () => void
  /** Both directions are closed. */
  readonly onClosed: (error: Error | undefined) => void
}

export class WatchedStream implements ByteStream {
  /** Bytes written to it. */
  written = 0
  /** Bytes received from it. */
  received = 0
  readonly #stream: ByteStream
  readonly #watch: StreamWatch

  constructor(stream: ByteStream, watch: StreamWatch) {
    this.#stream = stream
    this.#watch = watch
  }

  write(chunk: Buffer): boolean {
    this.written += chunk.length
    this.#watch.onMoved()
    return this.#stream.write(chunk)
  }

  writeLent(chunk: Buffer): boolean {
    this.written += chunk.length
    this.#watch.onMoved()
    return writeLent(this.#stream, chunk)
  }

  end(): void {
    this.#stream.end()
  }

  reset(): void {
    this.#stream.reset()
  }

  attach(sink: ByteSink): void {
    const { lent } = sink
    const received = (chunk: Buffer): void => {
      this.received += chunk.length
      this.#watch.onMoved()
    }
    this.#stream.attach({
      data: (chunk) => {
        received(chunk)
        sink.data(chunk)
      },
      lent:
        lent &&
        ((chunk) => {
          received(chunk)
          lent(chunk)
        }),
      end: () => sink.end(),
      drain: () => sink.drain(),
      closed: (error) => {
        sink.closed(error)
        this.#watch.onClosed(error)
      },
    })
  }

  pause(): void {
    this.#stream.pause()
  }

  resume(): void {
    this.#stream.resume()
  }
}
