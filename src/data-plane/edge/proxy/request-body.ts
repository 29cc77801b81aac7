/** The body of a visitor's request: read by modules that need all of it, sent upstream, and sent again if necessary. */
import { keepBytes } from '../../../lib/bytes/byte-stream.ts'
import type { HeaderList } from '../../../lib/http/header-list.ts'
import type { BodyReader, BodySink, BodyWriter, RequestHead } from '../../requests/http-exchange.ts'
import { type BodyLease, PIECE_BYTES } from '../body-memory.ts'
import { stripTrailers } from './proxied-headers.ts'

/** How much of a body is kept while it is sent, in bytes, so that it can be resent on another connection. */
const REPLAY_BYTES = 64 * 1024

/**
 * Kept bytes are sent in pieces of this size, in bytes, as there is room: a slow service must not get everything at
 * once.
 */
const SENT_BYTES = 64 * 1024

/** Why a body was not read: it is longer than allowed, or there is no memory for it now. */
export type UnreadBody = 'too_large' | 'no_memory'

/** What can be done with the body of a request. */
export type VisitorBody = Readonly<Omit<RequestBody, keyof BodySink>>

/** Most requests have no body; they share this object. */
export const noRequestBody: VisitorBody = {
  received: 0,
  isReplayable: true,
  isWhole: true,
  isStalled: false,
  readWhole: async () => Buffer.alloc(0),
  sendTo: (writer) => writer.end(),
  hold() {},
  forget() {},
  removeTrailers() {},
  stop() {},
}

interface RequestBodyOptions {
  readonly body: BodyReader
  /** Neither `none` nor 0. */
  readonly length: RequestHead['body']
  /** Names that must not be sent as trailers. */
  readonly removed: ReadonlySet<string>
  /** Bytes arrived; they are lent. */
  readonly onMoved: (chunk: Buffer) => void
  /** The rest will not come, while the body is being sent. */
  readonly onFailed: (error: Error) => void
}

export class RequestBody implements BodySink {
  /** Bytes received. */
  received = 0
  /** Whether everything received so far is kept, from the first byte on, and could be sent again. */
  isReplayable = true
  isWhole = false
  readonly #options: RequestBodyOptions
  /** Received chunks that are still needed, in order. */
  #kept: Buffer[] = []
  #keptBytes = 0
  #isStarted = false
  #isPaused = false
  #trailers: HeaderList | undefined
  #removed: ReadonlySet<string>
  #error: Error | undefined
  #writer: BodyWriter | undefined
  #whole: { readonly maxBytes: number; readonly settle: () => void } | undefined
  /** The memory for kept bytes; undefined unless a module asked for the whole body. */
  #lease: BodyLease | undefined
  /** Whether there was no memory for it. */
  #isUnaffordable = false
  /** The next kept chunk for the writer, and the position in it. */
  #nextKept = 0
  #nextByte = 0
  #mayRepeat = false

  constructor(options: RequestBodyOptions) {
    this.#options = options
    this.#removed = options.removed
  }

  /**
   * Reads the whole body into the memory of `lease`, and keeps it. After `too_large` the body can still be refused or sent on;
   * after `no_memory` it can only be refused. The lease is released when the body is no longer needed.
   */
  async readWhole(maxBytes: number, lease: () => BodyLease): Promise<Buffer | UnreadBody> {
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
    if (!this.isWhole || this.#keptBytes > maxBytes) return 'too_large'
    return this.#join()
  }

  /** Sends the body to `writer`, from the beginning. With `mayRepeat`, as much as allowed is kept for another writer. */
  sendTo(writer: BodyWriter, { mayRepeat }: { mayRepeat: boolean }): void {
    this.#writer = writer
    this.#mayRepeat = mayRepeat
    this.#nextKept = this.#nextByte = 0
    writer.onDrain = () => {
      if (this.#writer === writer) this.#proceed()
    }
    this.#proceed()
  }

  /** Keeps bytes until there is another writer; this one is gone. */
  hold(): void {
    this.#writer = undefined
    if (this.#isStarted && !this.isWhole) this.#pause()
  }

  /** Drops sent bytes: they will not be needed again. */
  forget(): void {
    // Bytes that the writer has not taken are still needed.
    if (this.#writer && this.#hasUnsent) this.#mayRepeat = false
    else this.#drop()
  }

  /** These headers are removed from the request, so they must not go upstream as trailers either. */
  removeTrailers(names: ReadonlySet<string>): void {
    this.#removed = new Set([...this.#removed, ...names])
  }

  /** Stops; the body is no longer needed. */
  stop(): void {
    this.hold()
    this.#drop()
  }

  data(chunk: Buffer): void {
    this.received += chunk.length
    this.#options.onMoved(chunk)
    if (this.#isUnaffordable) return
    const mustWait = this.#writer !== undefined && this.#hasUnsent
    if (this.isReplayable || mustWait) this.#keep(chunk)
    if (mustWait) this.#pause()
    else if (this.#writer) {
      this.#nextKept = this.#kept.length
      if (!this.#writer.write(chunk)) this.#pause()
    } else if (this.#whole) {
      if (this.#isUnaffordable || this.#keptBytes > this.#whole.maxBytes) this.#settle()
    } else this.#pause()
  }

  end(trailers: HeaderList | undefined): void {
    this.isWhole = true
    this.#trailers = trailers
    if (this.#writer && !this.#hasUnsent) this.#end(this.#writer)
    this.#settle()
  }

  failed(error: Error): void {
    this.#error = error
    if (this.#writer) this.#options.onFailed(error)
    this.#settle()
  }

  /** Whether its reader does not take any more for now. */
  get isStalled(): boolean {
    return this.#isPaused && !this.isWhole
  }

  /** Whether the writer has not got all kept bytes yet. */
  get #hasUnsent(): boolean {
    return this.#nextKept < this.#kept.length
  }

  /** Sends as much as the writer has room for: first kept bytes, then new ones. */
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
      // The writer may have failed and ended it.
      if (this.#writer !== writer) return
      if (!hasRoom && !this.isWhole && !this.#error) {
        if (!this.#mayRepeat) this.#drop()
        return
      }
    }
    if (!this.#mayRepeat) this.#drop()
    if (this.isWhole) this.#end(writer)
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
    this.#kept.push(keepBytes(chunk))
    this.#keptBytes += chunk.length
  }

  /** Joins the kept chunks into one buffer. Both exist for a moment, for one body at a time. */
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
    this.isReplayable = false
    this.#lease?.release()
  }

  #isEnough(maxBytes: number): boolean {
    return this.isWhole || this.#error !== undefined || this.#isUnaffordable || this.#keptBytes > maxBytes
  }

  #settle(): void {
    const whole = this.#whole
    this.#whole = undefined
    if (!whole) return
    if (!this.isWhole && !this.#error) this.#pause()
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
