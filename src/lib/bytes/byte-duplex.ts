/** A byte stream as a Node Duplex, for APIs that require one. */
import { Duplex } from 'node:stream'
import type { ByteStream } from './byte-stream.ts'

/**
 * Takes over `stream`. Each direction ends on its own; destroying the duplex early resets the stream. Slower than a byte
 * stream, so use it for such APIs only.
 */
export class ByteDuplex extends Duplex {
  /** Bytes moved in both directions together. */
  moved = 0
  /** Whether the stream broke, and not because we destroyed it. */
  isBroken = false
  readonly #stream: ByteStream
  #written: ((error?: Error) => void) | undefined
  #isClosed = false

  constructor(stream: ByteStream) {
    super({ allowHalfOpen: true })
    this.#stream = stream
    stream.attach({
      data: (chunk) => {
        this.moved += chunk.length
        if (!this.push(chunk)) stream.pause()
      },
      end: () => {
        this.push(null)
      },
      drain: () => this.#proceed(),
      closed: (error) => {
        this.#isClosed = true
        this.isBroken = error !== undefined && !this.destroyed
        if (error) this.destroy(error)
        else this.#proceed()
      },
    })
  }

  override _read(): void {
    this.#stream.resume()
  }

  override _write(chunk: Buffer, _encoding: string, written: (error?: Error) => void): void {
    this._writev([{ chunk }], written)
  }

  override _writev(chunks: { chunk: Buffer }[], written: (error?: Error) => void): void {
    let hasRoom = true
    for (const { chunk } of chunks) {
      this.moved += chunk.length
      hasRoom = this.#stream.write(chunk)
    }
    if (this.#isClosed) written(new Error('the stream is closed'))
    else if (hasRoom) written()
    else this.#written = written
  }

  override _final(done: () => void): void {
    this.#stream.end()
    done()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    const isWhole = this.readableEnded && this.writableFinished
    if (!this.#isClosed && !isWhole) this.#stream.reset()
    this.#written = undefined
    done(error)
  }

  #proceed(): void {
    const written = this.#written
    this.#written = undefined
    written?.()
  }
}
