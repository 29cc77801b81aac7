/** An incoming body: decoded for its reader, at the pace of the reader. */
import { keepBytes } from '../../../lib/bytes/byte-stream.ts'
import type { BodyReader, BodySink } from '../../requests/http-exchange.ts'
import type { BodyDecoder } from './body-decoder.ts'
import { HeadFault } from './head-fault.ts'

/** The connection that a body arrives on. */
export interface BodyOwner {
  /** A reader has attached. */
  bodyAwaited(): void
  /** `wantsMore` may have changed. */
  bodyPaced(): void
  /** The last byte was read; called before the reader gets the end. `rest` is what came after it. */
  bodyWhole(rest: Buffer | undefined): void
  /** The connection ended before the last byte; called before the reader gets the error. */
  bodyLost(error: Error): void
  /** The framing of the body is invalid; called before the reader gets the error. */
  bodyMalformed(fault: HeadFault): void
  /** The reader threw. */
  bodyBroken(cause: unknown): void
}

/** No body at all. */
export const noBody: BodyReader = {
  read: (sink) => sink.end(undefined),
  pause() {},
  resume() {},
}

const discarding: BodySink = { data() {}, end() {}, failed() {} }

export class IncomingBody implements BodyReader {
  /** Bytes on the wire, framing included. */
  received = 0
  readonly #decoder: BodyDecoder
  readonly #owner: BodyOwner
  /** Bytes not yet read: at most what the connection delivered at once. */
  #chunk: Buffer | undefined
  #sink: BodySink | undefined
  #isPaused = false
  #isDelivering = false
  /** The connection delivers no more bytes. */
  #isCut = false
  #error: Error | undefined
  #isOver = false

  constructor(decoder: BodyDecoder, owner: BodyOwner) {
    this.#decoder = decoder
    this.#owner = owner
  }

  /** Whether the connection should deliver more. */
  get wantsMore(): boolean {
    return this.#chunk === undefined && !this.#isPaused
  }

  /** Bytes that wait for the reader. */
  get waiting(): number {
    return this.#chunk === undefined ? 0 : this.#chunk.length - this.#decoder.at
  }

  get isRead(): boolean {
    return this.#sink !== undefined
  }

  /** Whether any byte of it has arrived. */
  get hasBegun(): boolean {
    return this.received > 0 || this.#chunk !== undefined
  }

  /** Bytes of the body that are known to follow. */
  get left(): number | undefined {
    return this.#decoder.left
  }

  /** Whether it is whole, or its length is known. */
  get isEndKnown(): boolean {
    return this.#decoder.isWhole || this.#decoder.left !== undefined
  }

  read(sink: BodySink): void {
    if (this.#isOver || this.#sink === discarding) {
      sink.failed(this.#error ?? new Error('the body is gone'))
      return
    }
    if (this.#sink) throw new Error('a body is read once')
    this.#sink = sink
    this.#owner.bodyAwaited()
    this.#deliver()
    this.#owner.bodyPaced()
  }

  pause(): void {
    if (this.#sink === discarding) return
    this.#isPaused = true
    if (!this.#isDelivering) this.#owner.bodyPaced()
  }

  resume(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    if (this.#isDelivering) return
    this.#deliver()
    this.#owner.bodyPaced()
  }

  /** Drops what still arrives, and fails the reader. */
  discard(reason: Error): void {
    const sink = this.#sink
    this.#sink = discarding
    this.#isPaused = false
    sink?.failed(reason)
    this.#deliver()
  }

  /** Takes bytes of the connection, from `at` on. They may be lent, until `keep` is called. */
  accept(chunk: Buffer, at: number): void {
    if (this.#isOver || at === chunk.length) return
    if (this.#chunk) this.#chunk = Buffer.concat([this.#chunk.subarray(this.#decoder.at), chunk.subarray(at)])
    else this.#chunk = chunk
    this.#decoder.at = this.#chunk === chunk ? at : 0
    if (this.#sink) this.#deliver()
  }

  /** `memory` is about to be reused: copies what is not read yet. */
  keep(memory: ArrayBufferLike): void {
    if (this.#chunk?.buffer !== memory) return
    this.#chunk = keepBytes(this.#chunk.subarray(this.#decoder.at))
    this.#decoder.at = 0
  }

  /** The connection has ended; with an error when bytes may be missing. What arrived before can still be read. */
  acceptEnd(error?: Error): void {
    if (this.#isCut || this.#isOver) return
    this.#isCut = true
    this.#error = error
    if (this.#decoder.endsWithConnection && !error) {
      if (this.#sink) this.#deliver()
    } else {
      this.#error ??= new Error('the connection ended before the body was whole')
      if (!this.#chunk) this.#cut()
    }
  }

  /** The rest will not come, and what arrived is useless. */
  fail(error: Error): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#error = error
    this.#chunk = undefined
    this.#sink?.failed(error)
  }

  /** Drops it without calling the reader or the owner. */
  drop(): void {
    this.#isOver = true
    this.#chunk = undefined
  }

  #deliver(): void {
    if (this.#isDelivering || this.#isOver) return
    this.#isDelivering = true
    try {
      while (this.#step()) {
        // Delivers one piece per step; the reader may pause after each.
      }
    } catch (cause) {
      this.#isOver = true
      this.#owner.bodyBroken(cause)
    } finally {
      this.#isDelivering = false
    }
  }

  /** True when another piece may follow. */
  #step(): boolean {
    const chunk = this.#chunk
    if (this.#isPaused || this.#isOver) return false
    if (chunk === undefined) {
      if (this.#isCut) this.#cut()
      return false
    }
    const from = this.#decoder.at
    const piece = this.#decoder.next(chunk)
    this.received += this.#decoder.at - from
    if (piece instanceof HeadFault) {
      this.#owner.bodyMalformed(piece)
      this.fail(new Error(`the body is framed incorrectly: ${piece.what}`))
      return false
    }
    if (this.#decoder.at === chunk.length) this.#chunk = undefined
    if (piece) this.#sink?.data(piece)
    // The end is delivered even if the reader paused with the last piece.
    if (this.#decoder.isWhole) this.#finish()
    return !this.#isOver
  }

  #cut(): void {
    if (this.#error === undefined) this.#finish()
    else {
      this.#owner.bodyLost(this.#error)
      this.fail(this.#error)
    }
  }

  #finish(): void {
    if (this.#isOver) return
    this.#isOver = true
    // Checked only now: more may have arrived while the last piece was read.
    const rest = this.#chunk?.subarray(this.#decoder.at)
    this.#chunk = undefined
    this.#owner.bodyWhole(rest)
    this.#sink?.end(this.#decoder.trailers)
  }
}
