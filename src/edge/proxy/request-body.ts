/** The body of a visitor's request: read by modules that need all of it, and sent upstream, again if need be. */
import { kept } from '../../lib/bytes/byte-stream.ts'
import type { HeaderList } from '../../lib/http/header-list.ts'
import { type BodyLease, PIECE_BYTES } from '../body-memory.ts'
import type { BodyReader, BodySink, BodyWriter, RequestHead } from '../exchange.ts'
import { stripTrailers } from './headers.ts'

/** How much of a body is kept while it is sent, so that it can be sent once more on another connection, in bytes. */
const REPLAY_BYTES = 64 * 1024

/** What is kept is sent in pieces of this size, in bytes, each when there is room: a slow service must not get it all at once. */
const SENT_BYTES = 64 * 1024

/** Why a body was not read: it is longer than asked for, or there is no memory for it now. */
export type Unread = 'too_large' | 'no_memory'

/** What becomes of the body of a request. */
export interface VisitorBody {
  /** Bytes that came. */
  readonly received: number
  /** Whether all that came could be sent once more. */
  readonly isReplayable: boolean
  readonly isWhole: boolean
  /**
   * Reads all of it into memory of `lease`, and keeps it. `too_large` leaves it as it is, to be refused or to be sent on.
   * After `no_memory` it can only be refused. What the lease holds is released when the body is not needed any more.
   */
  readWhole(maxBytes: number, lease: () => BodyLease): Promise<Buffer | Unread>
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
  /** Pays for what is kept; undefined when nobody asked for the whole of it. */
  #lease: BodyLease | undefined
  /** Whether there was no memory for it. */
  #isUnaffordable = false
  /** Which of the kept chunks is sent to the writer next, and from where on. */
  #nextKept = 0
  #nextByte = 0
  #mayRepeat = false
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

  async readWhole(maxBytes: number, lease: () => BodyLease): Promise<Buffer | Unread> {
    const { length } = this.#options
    if (typeof length === 'number' && length > maxBytes) return 'too_large'
    if (this.#whole) throw new Error('the body is being read')
    this.#lease ??= lease()
    if (!this.#isEnough(maxBytes)) {
      await new Promise<void>((settle) => {
        this.#whole = { maxBytes, settle }
        this.#flow()
      })
    }
    if (this.#error) throw this.#error
    if (this.#isUnaffordable) return 'no_memory'
    if (!this.#isWhole || this.#keptBytes > maxBytes) return 'too_large'
    return this.#join()
  }

  sendTo(writer: BodyWriter, { mayRepeat }: { mayRepeat: boolean }): void {
    this.#writer = writer
    this.#mayRepeat = mayRepeat
    this.#nextKept = this.#nextByte = 0
    writer.onDrain = () => {
      if (this.#writer === writer) this.#proceed()
    }
    this.#proceed()
  }

  hold(): void {
    this.#writer = undefined
    if (this.#isStarted && !this.#isWhole) this.#pause()
  }

  forget(): void {
    // What the writer has not taken yet is still wanted.
    if (this.#writer && this.#hasUnsent) this.#mayRepeat = false
    else this.#drop()
  }

  removeTrailers(names: ReadonlySet<string>): void {
    this.#removed = new Set([...this.#removed, ...names])
  }

  stop(): void {
    this.hold()
    this.#drop()
  }

  data(chunk: Buffer): void {
    this.#received += chunk.length
    this.#options.onMoved()
    if (this.#isUnaffordable) return
    const mustWait = this.#writer !== undefined && this.#hasUnsent
    if (this.#isKeeping || mustWait) this.#keep(chunk)
    if (mustWait) this.#pause()
    else if (this.#writer) {
      this.#nextKept = this.#kept.length
      if (!this.#writer.write(chunk)) this.#pause()
    } else if (this.#whole) {
      if (this.#isUnaffordable || this.#keptBytes > this.#whole.maxBytes) this.#settle()
    } else this.#pause()
  }

  end(trailers: HeaderList | undefined): void {
    this.#isWhole = true
    this.#trailers = trailers
    if (this.#writer && !this.#hasUnsent) this.#end(this.#writer)
    this.#settle()
  }

  failed(error: Error): void {
    this.#error = error
    if (this.#writer) this.#options.onFailed(error)
    this.#settle()
  }

  /** Whether some of what is kept was not given to the writer yet. */
  get #hasUnsent(): boolean {
    return this.#nextKept < this.#kept.length
  }

  /** Gives the writer what it has room for: first what is kept, then what comes. */
  #proceed(): void {
    const writer = this.#writer
    if (!writer) return
    for (let chunk = this.#kept[this.#nextKept]; chunk; chunk = this.#kept[this.#nextKept]) {
      const piece = chunk.subarray(this.#nextByte, this.#nextByte + SENT_BYTES)
      this.#nextByte += piece.length
      if (this.#nextByte === chunk.length) {
        this.#nextKept++
        this.#nextByte = 0
      }
      const hasRoom = writer.write(piece)
      if (!hasRoom && this.#hasUnsent) return
      // It may be over by now, for a writer that failed.
      if (this.#writer !== writer) return
      if (!hasRoom && !this.#isWhole && !this.#error) {
        if (!this.#mayRepeat) this.#drop()
        return
      }
    }
    if (!this.#mayRepeat) this.#drop()
    if (this.#isWhole) this.#end(writer)
    else if (this.#error) this.#options.onFailed(this.#error)
    else this.#flow()
  }

  #end(writer: BodyWriter): void {
    this.#trailers = stripTrailers(this.#trailers, this.#removed)
    writer.end(this.#trailers)
  }

  #keep(chunk: Buffer): void {
    if (this.#writer && !this.#hasUnsent && this.#keptBytes + chunk.length > REPLAY_BYTES) {
      this.#drop()
      return
    }
    if (this.#lease && !this.#writer && !this.#lease.take(chunk.length + PIECE_BYTES)) {
      this.#isUnaffordable = true
      this.#drop()
      return
    }
    this.#kept.push(kept(chunk))
    this.#keptBytes += chunk.length
  }

  /** Makes one buffer of what is kept. For a moment there are both; that is at once, so of one body at a time. */
  #join(): Buffer {
    const { length } = this.#kept
    if (length > 1) {
      this.#kept = [Buffer.concat(this.#kept)]
      this.#lease?.give((length - 1) * PIECE_BYTES)
    }
    return this.#kept[0] ?? Buffer.alloc(0)
  }

  #drop(): void {
    this.#kept = []
    this.#keptBytes = this.#nextKept = this.#nextByte = 0
    this.#isKeeping = false
    this.#lease?.release()
  }

  #isEnough(maxBytes: number): boolean {
    return this.#isWhole || this.#error !== undefined || this.#isUnaffordable || this.#keptBytes > maxBytes
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
