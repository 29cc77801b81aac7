/** The two bodies of an HTTP/2 stream: the incoming one, at the pace of its reader, and the outgoing one. */
import { constants, type Http2Stream } from 'node:http2'
import { keepBytes } from '../../../lib/bytes/byte-stream.ts'
import { noteRead } from '../../../lib/bytes/read-memory.ts'
import type { HeaderList } from '../../../lib/http/header-list.ts'
import type { BodyLength, BodyReader, BodySink, BodyWriter } from '../../requests/http-exchange.ts'
import { fieldObject, readFields } from './raw-headers.ts'

interface StreamReaderOptions {
  /** The length that the head announced. */
  readonly length: BodyLength
  /** A reader has attached. */
  readonly onAwaited?: () => void
  /** The reader threw. */
  readonly onBroken: (cause: unknown) => void
}

export class StreamReader implements BodyReader {
  /** Whether the last byte was read. */
  isWhole = false
  readonly #stream: Http2Stream
  readonly #options: StreamReaderOptions
  #trailers: HeaderList | undefined
  #sink: BodySink | undefined
  #received = 0
  #isOver = false

  constructor(stream: Http2Stream, options: StreamReaderOptions) {
    this.#stream = stream
    this.#options = options
    stream.on('trailers', (_headers, _flags, raw?: string[]) => {
      this.#trailers = readFields(raw ?? []).headers
    })
  }

  read(sink: BodySink): void {
    const stream = this.#stream
    this.#options.onAwaited?.()
    this.#sink = sink
    if (this.#isOver || stream.destroyed) {
      this.#isOver = false
      this.cut()
      return
    }
    stream.on('data', (chunk: Buffer) => {
      this.#received += chunk.length
      // The library allocates memory for each read, so nothing is lent.
      noteRead(chunk.length)
      if (!this.#isOver) this.#guard(() => sink.data(chunk))
    })
    stream.on('end', () => this.#end())
    stream.on('close', () => this.cut())
  }

  /** The rest will not come. */
  cut(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#guard(() => this.#sink?.failed(new Error('the stream was reset before its body was whole')))
  }

  pause(): void {
    this.#stream.pause()
  }

  resume(): void {
    this.#stream.resume()
  }

  #end(): void {
    if (this.#isOver) return
    const { aborted, rstCode } = this.#stream
    const { length } = this.#options
    // A stream that was reset ends as well, as if it were complete.
    const isShort = typeof length === 'number' && this.#received < length
    if (aborted || rstCode !== constants.NGHTTP2_NO_ERROR || isShort) {
      this.cut()
      return
    }
    this.#isOver = true
    this.isWhole = true
    this.#guard(() => this.#sink?.end(this.#trailers))
  }

  /** An error in the reader ends this stream and no other. */
  #guard(call: () => void): void {
    try {
      call()
    } catch (cause) {
      this.#isOver = true
      this.#options.onBroken(cause)
    }
  }
}

interface StreamWriterOptions {
  /** A message without a body: writes are dropped. */
  readonly isEmpty: boolean
  /** Whether the stream was started so that trailers can follow. */
  readonly hasTrailers: boolean
  /** The code that the other end gets when the body is cut short. */
  readonly abortCode: number
  /** The body is complete and its end is on the way; the stream may be closed after it. */
  readonly onSent?: () => void
}

export class StreamWriter implements BodyWriter {
  onDrain: (() => void) | undefined
  readonly #stream: Http2Stream
  readonly #options: StreamWriterOptions
  #trailers: HeaderList | undefined
  #isOver = false

  constructor(stream: Http2Stream, options: StreamWriterOptions) {
    this.#stream = stream
    this.#options = options
    if (options.isEmpty) return
    stream.on('drain', () => this.onDrain?.())
    if (options.hasTrailers) stream.on('wantTrailers', () => this.#sendTrailers())
  }

  write(chunk: Buffer): boolean {
    // Never asks to wait: a reader that forwards its input must reach the end.
    if (this.#isOver || this.#options.isEmpty || this.#stream.destroyed || chunk.length === 0) return true
    return this.#stream.write(keepBytes(chunk))
  }

  end(trailers?: HeaderList): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#trailers = trailers
    const { isEmpty, hasTrailers, onSent } = this.#options
    if (!isEmpty && !this.#stream.destroyed) this.#stream.end()
    if (isEmpty || !hasTrailers) onSent?.()
  }

  abort(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#stream.close(this.#options.abortCode)
  }

  #sendTrailers(): void {
    const { onSent } = this.#options
    if (this.#stream.destroyed || this.#stream.closed) return
    this.#stream.sendTrailers(fieldObject(this.#trailers))
    // The library sends the trailers in the next immediate, so `onSent` runs after that.
    if (onSent) setImmediate(onSent)
  }
}
