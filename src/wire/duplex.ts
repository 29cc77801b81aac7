/** A stream as a Node Duplex, for APIs that want one; nothing else should pay for it. */
import { Duplex } from 'node:stream'
import { WireError } from './wire-error.ts'
import type { WireStream } from './wire-stream.ts'

/** Ends each way on its own; destroying it early resets the stream. */
export class StreamDuplex extends Duplex {
  readonly #stream: WireStream
  #written: ((error?: Error) => void) | undefined

  constructor(stream: WireStream) {
    super({ allowHalfOpen: true })
    this.#stream = stream
    stream.attach({
      data: (chunk) => {
        if (!this.push(chunk)) stream.pause()
      },
      end: () => {
        this.push(null)
      },
      drain: () => this.#proceed(),
      closed: (error) => {
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
    for (const { chunk } of chunks) hasRoom = this.#stream.write(chunk)
    if (this.#stream.isClosed) written(new WireError('stream_closed', 'us', 'the stream is closed'))
    else if (hasRoom) written()
    else this.#written = written
  }

  override _final(done: () => void): void {
    this.#stream.end()
    done()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    const isWhole = this.readableEnded && this.writableFinished
    if (!this.#stream.isClosed && !isWhole) this.#stream.reset('stream_cancelled')
    this.#written = undefined
    done(error)
  }

  #proceed(): void {
    const written = this.#written
    this.#written = undefined
    written?.()
  }
}
