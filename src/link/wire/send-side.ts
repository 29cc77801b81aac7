/** The sending side of a stream: unsent bytes, the peer's window, and the frames made of them. */
import type { Batch } from './batch.ts'
import { ByteQueue } from './byte-queue.ts'
import { FIN, SYN } from './frame.ts'
import { WINDOW_BYTES, WRITE_HIGH_BYTES, WRITE_LOW_BYTES } from './wire-bounds.ts'

/** Largest window that counts, in bytes; more would be useless. */
const LARGEST_WINDOW_BYTES = 0x7fffffff

export class SendSide {
  readonly #id: number
  readonly #unsent = new ByteQueue()
  #window = WINDOW_BYTES
  /** Whether the peer knows of the stream. */
  isSynSent: boolean
  isEnding = false
  isFinSent = false
  #hasWaiter = false

  constructor(id: number, { isSynSent }: { isSynSent: boolean }) {
    this.#id = id
    this.isSynSent = isSynSent
  }

  get unsent(): number {
    return this.#unsent.length
  }

  /** Whether a frame may be sent now. */
  get isReady(): boolean {
    if (this.isFinSent) return false
    return this.#unsent.length > 0 ? this.#window > 0 : this.isEnding
  }

  /** Whether bytes may go straight into a frame: nothing is queued, and the window is open. */
  get isClear(): boolean {
    return this.#unsent.length === 0 && this.#window > 0 && this.isSynSent && !this.isEnding
  }

  /** Queues `chunk`; false asks the writer to wait. */
  push(chunk: Buffer): boolean {
    this.#unsent.push(chunk)
    return this.#hasRoom()
  }

  /** The same for lent bytes. */
  pushLent(chunk: Buffer): boolean {
    this.#unsent.pushLent(chunk)
    return this.#hasRoom()
  }

  /** Notes that the writer waits for `releaseWaiter`. */
  makeWait(): void {
    this.#hasWaiter = true
  }

  /** Drops what is unsent; nothing more is sent. */
  abandon(): void {
    this.#unsent.clear()
    this.isEnding = true
    this.isFinSent = true
  }

  credit(increment: number): void {
    this.#window = Math.min(this.#window + increment, LARGEST_WINDOW_BYTES)
  }

  /** Writes one frame of at most `max` bytes. */
  emit(batch: Batch, max: number): void {
    const length = Math.min(this.#unsent.length, this.#window, max)
    // Never SYN and FIN in one frame: agents in Go could not answer.
    const fin = this.isEnding && this.isSynSent && length === this.#unsent.length
    batch.data(this.#id, (this.isSynSent ? 0 : SYN) | (fin ? FIN : 0), length)
    for (let left = length; left > 0; ) {
      const piece = this.#unsent.shift(left)
      if (piece === undefined) break
      batch.body(piece)
      left -= piece.length
    }
    this.#window -= length
    this.isSynSent = true
    this.isFinSent = fin
  }

  /** Writes one frame with at most `max` bytes of `chunk` from `at` on; returns their number. Only when `isClear`. */
  emitLent(batch: Batch, chunk: Buffer, at: number, max: number): number {
    const length = Math.min(chunk.length - at, this.#window, max)
    batch.data(this.#id, 0, length)
    batch.body(chunk.length === length ? chunk : chunk.subarray(at, at + length))
    this.#window -= length
    return length
  }

  /** Whether a waiting writer may go on; true once for each wait. */
  releaseWaiter(): boolean {
    if (!this.#hasWaiter || this.isEnding || this.#unsent.length > WRITE_LOW_BYTES) return false
    this.#hasWaiter = false
    return true
  }

  #hasRoom(): boolean {
    if (this.#unsent.length < WRITE_HIGH_BYTES) return true
    this.#hasWaiter = true
    return false
  }
}
