/** The body of a visitor's request: read by modules that need all of it, and sent upstream, again if need be. */
import { kept } from '../../lib/byte-stream.ts'
import type { HeaderList } from '../../lib/header-list.ts'
import type { BodyReader, BodySink, BodyWriter, RequestHead } from '../exchange.ts'
import { stripTrailers } from './headers.ts'

/** How much of a body is kept while it is sent, so that it can be sent once more on another connection, in bytes. */
const REPLAY_BYTES = 64 * 1024

/** What becomes of the body of a request. */
export interface VisitorBody {
  /** Bytes that came. */
  readonly received: number
  /** Whether all that came could be sent once more. */
  readonly isReplayable: boolean
  readonly isWhole: boolean
  /** Reads all of it and keeps it; `too_large` leaves it as it is, to be refused or to be sent on. */
  readWhole(maxBytes: number): Promise<Buffer | 'too_large'>
  /** Sends it to `writer`, from its beginning. With `mayRepeat` as much as may be kept is kept, for another writer. */
  sendTo(writer: BodyWriter, options: { mayRepeat: boolean }): void
  /** The writer is gone; what comes is kept until there is another. */
  hold(): void
  /** What was sent will not be wanted again. */
  forget(): void
  /** Headers of these names are removed from the request: no trailer of them goes upstream either. */
  removeTrailers(names: ReadonlySet<string>): void
  /** Nobody wants it any more. */
  stop(): void
}

/** Most requests have none, and pay nothing for it. */
export const noRequestBody: VisitorBody = {
  received: 0,
  isReplayable: true,
  isWhole: true,
  readWhole: async () => Buffer.alloc(0),
  sendTo: (writer) => writer.end(),
  hold() {},
  forget() {},
  removeTrailers() {},
  stop() {},
}

export interface RequestBodyOptions {
  readonly body: BodyReader
  /** Not `none`, and not nothing. */
  readonly length: RequestHead['body']
  /** Names that are no trailers of this request. */
  readonly removed: ReadonlySet<string>
  /** Bytes came. */
  readonly onMoved: () => void
  /** The rest will not come, while it is sent. */
  readonly onFailed: (error: Error) => void
}

export class RequestBody implements VisitorBody, BodySink {
  readonly #options: RequestBodyOptions
  /** Chunks that came and are still needed, in order. */
  #kept: Buffer[] = []
  #keptBytes = 0
  /** Whether all that comes is kept, from the first byte on. */
  #isKeeping = true
  #isStarted = false
  #isPaused = false
  #isWhole = false
  #trailers: HeaderList | undefined
  #removed: ReadonlySet<string>
  #error: Error | undefined
  #writer: BodyWriter | undefined
  #whole: { readonly maxBytes: number; readonly settle: () => void } | undefined
  #received = 0

  constructor(options: RequestBodyOptions) {
    this.#options = options
    this.#removed = options.removed
  }

  get received(): number {
    return this.#received
  }

  get isReplayable(): boolean {
    return this.#isKeeping
  }

  get isWhole(): boolean {
    return this.#isWhole
  }

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

  sendTo(writer: BodyWriter, { mayRepeat }: { mayRepeat: boolean }): void {
    this.#writer = writer
    writer.onDrain = () => {
      if (this.#writer === writer) this.#flow()
    }
    let hasRoom = true
    for (const chunk of this.#kept) hasRoom = writer.write(chunk)
    if (!mayRepeat) this.forget()
    if (this.#isWhole) this.#end(writer)
    else if (this.#error) this.#options.onFailed(this.#error)
    else if (hasRoom) this.#flow()
  }

  hold(): void {
    this.#writer = undefined
    if (this.#isStarted && !this.#isWhole) this.#pause()
  }

  forget(): void {
    this.#kept = []
    this.#keptBytes = 0
    this.#isKeeping = false
  }

  removeTrailers(names: ReadonlySet<string>): void {
    this.#removed = new Set([...this.#removed, ...names])
  }

  stop(): void {
    this.hold()
    this.forget()
  }

  data(chunk: Buffer): void {
    this.#received += chunk.length
    this.#options.onMoved()
    if (this.#isKeeping) this.#keep(chunk)
    if (this.#writer) {
      if (!this.#writer.write(chunk)) this.#pause()
    } else if (this.#whole) {
      if (this.#keptBytes > this.#whole.maxBytes) this.#settle()
    } else this.#pause()
  }

  end(trailers: HeaderList | undefined): void {
    this.#isWhole = true
    this.#trailers = trailers
    if (this.#writer) this.#end(this.#writer)
    this.#settle()
  }

  failed(error: Error): void {
    this.#error = error
    if (this.#writer) this.#options.onFailed(error)
    this.#settle()
  }

  #end(writer: BodyWriter): void {
    this.#trailers = stripTrailers(this.#trailers, this.#removed)
    writer.end(this.#trailers)
  }

  #keep(chunk: Buffer): void {
    if (this.#writer && this.#keptBytes + chunk.length > REPLAY_BYTES) {
      this.forget()
      return
    }
    this.#kept.push(kept(chunk))
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
