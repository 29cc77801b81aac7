/**
 * Keeps the latest records in a fixed amount of memory: new ones take the place of the oldest. All of them are bytes of
 * one buffer, so that the collector has nothing to look at.
 */

export interface RecordRingOptions {
  /** Memory for everything, in bytes. */
  readonly bytes: number
  /** What a small record takes, in bytes: the places for records are counted out by it. */
  readonly usualBytes: number
}

/** Where a record is, and how long: two numbers for each. */
const PLACE_BYTES = 16

export class RecordRing {
  /** What records are written into; see `room`. */
  readonly bytes: Buffer
  readonly #size: number
  readonly #places: number
  /** Where each record begins, if the buffer had no end. */
  readonly #starts: Float64Array
  readonly #lengths: Float64Array
  #oldest = 0
  #next = 0
  /** Where the next record begins, if the buffer had no end, and in it. */
  #head = 0
  #at = 0
  /** The places of the oldest record and of the next: a division for each would cost more than all the rest. */
  #oldestPlace = 0
  #nextPlace = 0

  constructor({ bytes, usualBytes }: RecordRingOptions) {
    this.#places = Math.max(1, Math.floor(bytes / (usualBytes + PLACE_BYTES)))
    this.#size = Math.max(1, bytes - this.#places * PLACE_BYTES)
    // The system gives the memory when it is first written.
    this.bytes = Buffer.alloc(this.#size)
    this.#starts = new Float64Array(this.#places)
    this.#lengths = new Float64Array(this.#places)
  }

  /** The number that the next record will have. Records are numbered from 0. */
  get next(): number {
    return this.#next
  }

  /** The number of the oldest record that is still there; equal to `next` when there is none. */
  get oldest(): number {
    return this.#oldest
  }

  /**
   * Makes room for a record of at most `length` bytes; gives where in `bytes` it must be written at once, before `keep`,
   * or -1 when it never fits.
   */
  room(length: number): number {
    const size = this.#size
    if (length > size) return -1
    // A record lies in one piece: what is left at the end stays empty.
    if (this.#at + length > size) {
      this.#head += size - this.#at
      this.#at = 0
    }
    const free = this.#head + length - size
    while (
      this.#oldest < this.#next &&
      (this.#next - this.#oldest === this.#places || (this.#starts[this.#oldestPlace] ?? 0) < free)
    ) {
      this.#oldest++
      if (++this.#oldestPlace === this.#places) this.#oldestPlace = 0
    }
    return this.#at
  }

  /** Takes the record that was written into the room, with its true length. */
  keep(length: number): void {
    this.#starts[this.#nextPlace] = this.#head
    this.#lengths[this.#nextPlace] = length
    this.#next++
    if (++this.#nextPlace === this.#places) this.#nextPlace = 0
    this.#head += length
    this.#at += length
  }

  /** A record by its number, while it is there. The bytes are lent: they may be another record's later. */
  read(number: number): Buffer | undefined {
    if (!(number >= this.#oldest && number < this.#next)) return undefined
    const place = number % this.#places
    const start = (this.#starts[place] ?? 0) % this.#size
    return this.bytes.subarray(start, start + (this.#lengths[place] ?? 0))
  }
}
