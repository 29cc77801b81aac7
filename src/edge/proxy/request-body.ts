/** The body of a visitor's request: read by modules that need all of it, and sent upstream, again if need be. */
import type { HeaderList } from '../../lib/header-list.ts'
import type { BodyReader, BodySink, BodyWriter, RequestHead } from '../exchange.ts'
import { stripTrailers } from './headers.ts'

/** How much of a body is kept while it is sent, so that it can be sent once more on another connection, in bytes. */
const REPLAY_BYTES = 64 * 1024

export interface RequestBodyOptions {
  readonly body: BodyReader
  readonly length: RequestHead['body']
  /** Bytes came. */
  readonly onMoved: () => void
  /** The rest will not come, while it is sent. */
  readonly onFailed: (error: Error) => void
}

export class RequestBody implements BodySink {
  readonly #options: RequestBodyOptions
  /** Chunks that came and are still needed, in order. */
  #kept: Buffer[] = []
  #keptBytes = 0
  /** Whether `#kept` is all that came so far. */
  #isAllKept = true
  #isStarted = false
  #isPaused = false
  #isWhole: boolean
  #trailers: HeaderList | undefined
  #error: Error | undefined
  #writer: BodyWriter | undefined
  #whole: { readonly maxBytes: number; readonly settle: () => void } | undefined
  #received = 0

  constructor(options: RequestBodyOptions) {
    this.#options = options
    this.#isWhole = options.length === 'none' || options.length === 0
  }

  /** Bytes that came. */
  get received(): number {
    return this.#received
  }

  /** Whether all that came could be sent once more. */
  get isReplayable(): boolean {
    return this.#isAllKept
  }

  get isWhole(): boolean {
    return this.#isWhole
  }

  /** Reads all of it and keeps it; `too_large` leaves it as it is, to be refused or to be sent on. */
  async readWhole(maxBytes: number): Promise<Buffer | 'too_large'> {
    const { length } = this.#options
    if (typeof length === 'number' && length > maxBytes) return 'too_large'
    if (this.#whole) throw new Error('the body is being read')
    if (!this.#isEnough(maxBytes)) {
      await new Promise<void>((settle) => {
        this.#whole = { maxBytes, settle }
        this.#flow()
      })
    }
    if (this.#error) throw this.#error
    if (!this.#isWhole || this.#keptBytes > maxBytes) return 'too_large'
    // One buffer from here on, however often it is asked for.
    if (this.#kept.length !== 1) this.#kept = [Buffer.concat(this.#kept)]
    return this.#kept[0] ?? Buffer.alloc(0)
  }

  /** Sends it to `writer`, from its beginning. With `mayRepeat` as much as may be kept is kept, for another writer. */
  sendTo(writer: BodyWriter, { mayRepeat }: { mayRepeat: boolean }): void {
    this.#writer = writer
    writer.onDrain = () => {
      if (this.#writer === writer) this.#flow()
    }
    let hasRoom = true
    for (const chunk of this.#kept) hasRoom = writer.write(chunk)
    if (!mayRepeat) this.forget()
    if (this.#isWhole) writer.end(this.#trailers)
    else if (this.#error) this.#options.onFailed(this.#error)
    else if (hasRoom) this.#flow()
  }

  /** The writer is gone; what comes is kept until there is another. */
  hold(): void {
    this.#writer = undefined
    if (this.#isStarted && !this.#isWhole) this.#pause()
  }

  /** What was sent will not be wanted again. */
  forget(): void {
    this.#kept = []
    this.#keptBytes = 0
    this.#isAllKept = this.#received === 0
  }

  /** Nobody wants it any more. */
  stop(): void {
    this.hold()
    this.forget()
  }

  data(chunk: Buffer): void {
    this.#received += chunk.length
    this.#options.onMoved()
    if (this.#isAllKept) this.#keep(chunk)
    if (this.#writer) {
      if (!this.#writer.write(chunk)) this.#pause()
    } else if (this.#whole) {
      if (this.#keptBytes > this.#whole.maxBytes) this.#settle()
    } else this.#pause()
  }

  end(trailers: HeaderList | undefined): void {
    this.#isWhole = true
    this.#trailers = stripTrailers(trailers)
    this.#writer?.end(this.#trailers)
    this.#settle()
  }

  failed(error: Error): void {
    this.#error = error
    if (this.#writer) this.#options.onFailed(error)
    this.#settle()
  }

  #keep(chunk: Buffer): void {
    if (this.#writer && this.#keptBytes + chunk.length > REPLAY_BYTES) {
      this.forget()
      return
    }
    this.#kept.push(chunk)
    this.#keptBytes += chunk.length
  }

  #isEnough(maxBytes: number): boolean {
    return this.#isWhole || this.#error !== undefined || this.#keptBytes > maxBytes
  }

  #settle(): void {
    const whole = this.#whole
    this.#whole = undefined
    if (!whole) return
    if (!this.#isWhole && !this.#error) this.#pause()
    whole.settle()
  }

  #flow(): void {
    if (!this.#isStarted) {
      this.#isStarted = true
      this.#options.body.read(this)
    } else if (this.#isPaused) {
      this.#isPaused = false
      this.#options.body.resume()
    }
  }

  #pause(): void {
    if (this.#isPaused) return
    this.#isPaused = true
    this.#options.body.pause()
  }
}
