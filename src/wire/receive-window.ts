/** What the peer may still send on one stream, what we owe it, and how far that grows where both ends agreed to it. */
import { CREDIT_SHARE, WINDOW_BYTES } from './bounds.ts'

/** What the windows of a session share; the session sets it as it learns. */
export interface Growth {
  /** Largest window of a stream, in bytes; `WINDOW_BYTES` while nothing else is agreed. */
  streamBytes: number
  /** What the windows of the session may still grow by, in bytes. */
  spareBytes: number
  /** Round trip time in milliseconds; undefined while unknown, and then nothing grows. */
  roundTripMs: number | undefined
  readonly now: () => number
}

/** A window that the bandwidth-delay product fills to this share is too small. */
const FULL_SHARE = 1 / 8

/** A window that it fills to less than this share is too large: the stream is slow, and others may need the memory. */
const SPARSE_SHARE = 1 / 32

export class ReceiveWindow {
  readonly #growth: Growth
  #size = WINDOW_BYTES
  #open = WINDOW_BYTES
  #owed = 0
  /** Since when the rate is measured, and what was read since. */
  #since: number | undefined
  #read = 0
  #isClosed = false

  constructor(growth: Growth) {
    this.#growth = growth
  }

  /** The most that the peer's bytes can hold of our memory. */
  get size(): number {
    return this.#size
  }

  /** What the peer may send now. */
  get open(): number {
    return this.#open
  }

  /** Read but not yet credited. */
  get owed(): number {
    return this.#owed
  }

  /** Takes note of a frame that begins; false when the peer was not allowed to send it. */
  receive(bytes: number): boolean {
    if (bytes > this.#open) return false
    this.#open -= bytes
    return true
  }

  /** Takes note of bytes that were read; true when it is time to send credit. */
  consume(bytes: number): boolean {
    this.#owed += bytes
    this.#read += bytes
    return this.#owed >= this.#size * CREDIT_SHARE
  }

  /** The credit to send now; may be zero when the window shrinks. */
  credit(): number {
    const change = this.#resize()
    const credit = Math.max(0, this.#owed + change)
    // A window shrinks by credit that is not given, so no further than what is owed.
    this.#size += credit - this.#owed
    this.#growth.spareBytes -= credit - this.#owed
    this.#owed = 0
    this.#open += credit
    return credit
  }

  /** Gives back what it took of the session's share. */
  close(): void {
    this.#isClosed = true
    this.#growth.spareBytes += this.#size - WINDOW_BYTES
    this.#size = WINDOW_BYTES
  }

  #resize(): number {
    const { streamBytes, spareBytes, roundTripMs, now } = this.#growth
    if (this.#isClosed || roundTripMs === undefined || streamBytes <= WINDOW_BYTES) return 0
    const time = now()
    this.#since ??= time
    const elapsed = time - this.#since
    // Bytes come in bursts: a rate is one only when measured over a round trip.
    if (elapsed < roundTripMs || elapsed === 0) return 0
    const product = (this.#read / elapsed) * roundTripMs
    this.#since = time
    this.#read = 0
    if (product >= this.#size * FULL_SHARE)
      return Math.max(0, Math.min(this.#size, streamBytes - this.#size, spareBytes))
    if (product < this.#size * SPARSE_SHARE) return -Math.min(Math.floor(this.#size / 2), this.#size - WINDOW_BYTES)
    return 0
  }
}
