/** One stream of a session: its two directions, its sink, and its end. */
import { keepBytes } from '../../lib/bytes/byte-stream.ts'
import type { Batch } from './batch.ts'
import { ByteQueue } from './byte-queue.ts'
import type { MuxOutbox } from './outbox.ts'
import { type Growth, ReceiveWindow } from './receive-window.ts'
import { SendSide } from './send-side.ts'
import type { QueueMember } from './turns.ts'
import { LONE_FRAME_BYTES } from './wire-bounds.ts'
import { type WireCode, WireError } from './wire-error.ts'
import type { StreamSink, WireStream } from './wire-stream.ts'

/** What a stream needs from its session. */
export interface StreamOwner {
  readonly growth: Growth
  readonly outbox: MuxOutbox
  sendReset(id: number, code: WireCode, options: { withFin: boolean }): void
  forget(stream: MuxStream): void
}

export class MuxStream implements WireStream, QueueMember {
  readonly id: number
  /** Whether we opened it. */
  readonly isOurs: boolean
  readonly window: ReceiveWindow
  /** Which queues of the outbox it is in; set by the outbox only. */
  queues = 0
  /** Whether its type number has been read. */
  isTyped: boolean
  credited = 0
  isHeard = false
  isEndReceived = false
  isClosed = false
  isPrompt = false
  onArrival: (() => void) | undefined
  readonly #owner: StreamOwner
  readonly #sending: SendSide
  readonly #unread = new ByteQueue()
  #sink: StreamSink | undefined
  #isFlowing = false
  #isDelivering = false
  #isEndDelivered = false
  /** Set when what arrives is to be dropped; see `close`. */
  #isUnwanted = false
  #error: WireError | undefined

  constructor(id: number, owner: StreamOwner, { isOurs }: { isOurs: boolean }) {
    this.id = id
    this.isOurs = isOurs
    this.isTyped = isOurs
    this.window = new ReceiveWindow(owner.growth)
    this.#owner = owner
    this.#sending = new SendSide(id, { isSynSent: !isOurs })
  }

  get unsent(): number {
    return this.#sending.unsent
  }

  get unread(): number {
    return this.#unread.length
  }

  write(chunk: Buffer): boolean {
    // The stream is lost and only read to its end, so the writer need not wait.
    if (this.#error) return true
    if (this.isClosed || this.#sending.isEnding) return false
    const hasRoom = this.#sending.push(chunk)
    if (this.#sending.isReady) this.#owner.outbox.addReady(this)
    return hasRoom
  }

  writeLent(chunk: Buffer): boolean {
    if (this.#error) return true
    if (this.isClosed || this.#sending.isEnding) return false
    const sent = this.#sending.isClear ? this.#owner.outbox.takeLent(this, chunk) : 0
    if (sent < chunk.length) {
      const hasRoom = this.#sending.pushLent(sent === 0 ? chunk : chunk.subarray(sent))
      if (this.#sending.isReady) this.#owner.outbox.addReady(this)
      return hasRoom
    }
    // Asks the reader to wait, so that its next bytes need not be copied twice.
    if (this.#sending.isClear && this.#owner.outbox.hasRoomFor(this)) return true
    this.#sending.makeWait()
    return false
  }

  end(last?: Buffer): void {
    if (last) this.write(last)
    if (this.isClosed || this.#sending.isEnding) return
    this.#sending.isEnding = true
    if (this.#sending.isReady) this.#owner.outbox.addReady(this)
  }

  close(): void {
    if (this.isClosed) return
    this.#isUnwanted = true
    this.#consumed(this.#unread.length)
    this.#unread.clear()
    this.end()
    if (this.#sending.isFinSent) this.#finish(this.#error)
  }

  reset(code: WireCode = 'stream_cancelled'): void {
    this.#abort(new WireError(code, 'us', `we reset the stream: ${code}`), code)
  }

  attach(sink: StreamSink): void {
    this.onArrival = undefined
    this.#sink = sink
    if (this.isClosed) sink.closed(this.#error)
    else this.resume()
  }

  pause(): void {
    this.#isFlowing = false
  }

  resume(): void {
    if (!this.#sink) return
    this.#isFlowing = true
    if (this.#isDelivering) return
    this.#isDelivering = true
    while (this.#isFlowing) {
      const chunk = this.#unread.shift(LONE_FRAME_BYTES)
      if (chunk === undefined) break
      this.#lend(chunk)
    }
    this.#isDelivering = false
    this.#deliverEnd()
  }

  take(bytes: number): Buffer | undefined {
    const taken = this.#unread.take(bytes)
    if (taken) this.#consumed(bytes)
    return taken
  }

  /** Begins a DATA frame; false when it exceeds the window. */
  receive(bytes: number): boolean {
    if (bytes > 0) this.isHeard = true
    return this.window.receive(bytes)
  }

  /** Takes a piece of its body, which is lent. */
  accept(piece: Buffer): void {
    if (this.isClosed) return
    // Credit is sent even for unwanted bytes: a peer without a window could not send, and so would never get a reset.
    if (this.#isUnwanted) this.#consumed(piece.length)
    else if (this.#isFlowing && !this.#isDelivering && this.#unread.length === 0) this.#lend(piece)
    else {
      this.#unread.pushLent(piece)
      this.onArrival?.()
    }
  }

  /** Handles a FIN; agents may send it more than once. */
  acceptEnd(): void {
    if (this.isClosed || this.isEndReceived) return
    this.isEndReceived = true
    this.#deliverEnd()
    this.onArrival?.()
  }

  acceptCredit(increment: number): void {
    this.credited += increment
    this.#sending.credit(increment)
    if (this.isClosed) return
    if (this.#sending.isReady) this.#owner.outbox.addReady(this)
    else this.proceed()
  }

  /** Tells a waiting writer that there is room, unless something else blocks it. */
  proceed(): void {
    if (this.#sending.isClear && this.#sending.releaseWaiter()) this.#callDrain()
  }

  /** RST arrived, or the session ended. If the peer had ended its side, all that it sent before can still be read. */
  lose(error: WireError): void {
    const canBeRead = this.isEndReceived && !this.#isEndDelivered && !this.#isUnwanted
    if (!canBeRead || this.isClosed) this.#finish(error)
    else {
      this.#error = error
      this.#sending.abandon()
      // Otherwise a reader that waits for room to forward its bytes would wait for ever.
      this.#callDrain()
    }
  }

  /** Resets the stream because the peer violated the protocol on it. */
  violate(code: WireCode, what: string): void {
    this.#abort(new WireError(code, 'peer', what), code)
  }

  /** Whether bytes may go straight into a frame. */
  get isClear(): boolean {
    return !this.isClosed && this.#sending.isClear
  }

  /** Writes one frame with at most `max` lent bytes of `chunk` from `at` on; returns their number. */
  emitLent(batch: Batch, chunk: Buffer, at: number, max: number): number {
    return this.#sending.emitLent(batch, chunk, at, max)
  }

  /** Writes one frame of at most `max` bytes; true when more may be sent. */
  emit(batch: Batch, max: number): boolean {
    if (this.isClosed || !this.#sending.isReady) return false
    this.#sending.emit(batch, max)
    if (this.#sending.isFinSent) {
      if (this.#isUnwanted || this.#isEndDelivered) this.#finish(this.#error)
    } else if (this.#sending.releaseWaiter()) this.#callDrain()
    return !this.isClosed && this.#sending.isReady
  }

  #lend(chunk: Buffer): void {
    const sink = this.#sink
    this.#consumed(chunk.length)
    try {
      if (sink?.lent) sink.lent(chunk)
      else sink?.data(keepBytes(chunk))
    } catch (cause) {
      this.#fail(cause)
    }
  }

  #consumed(bytes: number): void {
    if (this.window.consume(bytes) && !this.isEndReceived && !this.isClosed) this.#owner.outbox.addCredit(this)
  }

  #deliverEnd(): void {
    if (!this.isEndReceived || this.#isEndDelivered || this.#isUnwanted || this.#unread.length > 0) return
    if (!this.#isFlowing || this.#isDelivering || this.isClosed) return
    this.#isEndDelivered = true
    try {
      this.#sink?.end()
    } catch (cause) {
      this.#fail(cause)
    }
    if (this.#sending.isFinSent) this.#finish(this.#error)
  }

  #callDrain(): void {
    try {
      this.#sink?.drain()
    } catch (cause) {
      this.#fail(cause)
    }
  }

  /** Resets the stream because its sink threw; such a defect of ours must not affect other streams. */
  #fail(cause: unknown): void {
    this.#abort(new WireError('internal_error', 'us', 'the handler of a stream failed', { cause }), 'internal_error')
  }

  #abort(error: WireError, code: WireCode): void {
    if (this.isClosed) return
    const { isSynSent, isFinSent } = this.#sending
    if (isSynSent) this.#owner.sendReset(this.id, code, { withFin: !isFinSent })
    this.#finish(error)
  }

  #finish(error: WireError | undefined): void {
    if (this.isClosed) return
    this.isClosed = true
    this.#error = error
    this.#unread.clear()
    this.#sending.abandon()
    this.window.close()
    this.#owner.forget(this)
    try {
      this.#sink?.closed(error)
    } catch {
      // The stream is gone; there is nothing left to reset.
    }
    this.onArrival?.()
  }
}
