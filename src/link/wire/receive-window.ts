/**
 * The receive window of one stream: what the peer may still send, the credit we owe it, and how the window grows if
 * both ends agreed.
 */
import { CREDIT_SHARE, WINDOW_BYTES } from './wire-bounds.ts'

/** What the windows of a session share; the session updates it. */
export interface Growth {
  /** Largest window of a stream, in bytes; `WINDOW_BYTES` until another is agreed. */
  streamBytes: number
  /** How much the windows of the session may still grow, in bytes. */
  spareBytes: number
  /** Round trip time in milliseconds; while it is unknown, nothing grows. */
  roundTripMs: number | undefined
  readonly now: () => number
}

/** A window is too small when the bandwidth-delay product fills this share of it. */
const FULL_SHARE = 1 / 8

/** A window is too large when the product fills less than this share: other streams may need the memory. */
const SPARSE_SHARE = 1 / 32

export class ReceiveWindow {
  readonly #growth: Growth
  /** The most memory that the peer's bytes can use. */
  size = WINDOW_BYTES
  /** How much the peer may send now. */
  open = WINDOW_BYTES
  /** Bytes read but not yet credited. */
  owed = 0
  /** Start of the rate measurement, and bytes read since. */
  #since: number | undefined
  #read = 0
  #isClosed = false

  constructor(growth: Growth) {
    this.#growth = growth
  }

  /** Records a frame that begins; false when it exceeds the window. */
  receive(bytes: number): boolean {
    if (bytes > this.open) return false
    this.open -= bytes
    return true
  }

  /** Records bytes that were read; true when credit should be sent. */
  consume(bytes: number): boolean {
    this.owed += bytes
    this.#read += bytes
    return this.owed >= this.size * CREDIT_SHARE
  }

  /** The credit to send now; may be zero when the window shrinks. */
  credit(): number {
    const change = this.#resize()
    const credit = Math.max(0, this.owed + change)
    // A window shrinks by withholding credit, so by no more than is owed.
    this.size += credit - this.owed
    this.#growth.spareBytes -= credit - this.owed
    this.owed = 0
    this.open += credit
    return credit
  }

  /** Returns its share of the session's budget. */
  close(): void {
    this.#isClosed = true
    this.#growth.spareBytes += this.size - WINDOW_BYTES
    this.size = WINDOW_BYTES
  }

  #resize(): number {
    const { streamBytes, spareBytes, roundTripMs, now } = this.#growth
    if (this.#isClosed || roundTripMs === undefined || streamBytes <= WINDOW_BYTES) return 0
    const time = now()
    this.#since ??= time
    const elapsed = time - this.#since
    // Bytes arrive in bursts: a rate must be measured over at least a round trip.
    if (elapsed < roundTripMs || elapsed === 0) return 0
    const product = (this.#read / elapsed) * roundTripMs
    this.#since = time
    this.#read = 0
    if (product >= this.size * FULL_SHARE) return Math.max(0, Math.min(this.size, streamBytes - this.size, spareBytes))
    if (product < this.size * SPARSE_SHARE) return -Math.min(Math.floor(this.size / 2), this.size - WINDOW_BYTES)
    return 0
  }
}
