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
  /** What records are written into; see `reserve`. */
  readonly bytes: Buffer
  readonly #size: number
  readonly #places: number
  /** Where each record begins, if the buffer had no end. */
  readonly #starts: Float64Array
  readonly #lengths: Float64Array
  #oldest = 0
  #next = 0
  #head = 0

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

  /** Makes room for the next record; gives where in `bytes` it must be written at once, or -1 when it never fits. */
  reserve(length: number): number {
    const size = this.#size
    if (length > size) return -1
    const at = this.#head % size
    // A record lies in one piece: what is left at the end stays empty.
    const start = at + length > size ? this.#head + size - at : this.#head
    const head = start + length
    while (
      this.#oldest < this.#next &&
      (this.#next - this.#oldest === this.#places || this.#startOf(this.#oldest) + size < head)
    ) {
      this.#oldest++
    }
    const place = this.#next % this.#places
    this.#starts[place] = start
    this.#lengths[place] = length
    this.#next++
    this.#head = head
    return start % size
  }

  /** A record by its number, while it is there. The bytes are lent: they may be another record's later. */
  read(number: number): Buffer | undefined {
    if (!(number >= this.#oldest && number < this.#next)) return undefined
    const start = this.#startOf(number) % this.#size
    return this.bytes.subarray(start, start + (this.#lengths[number % this.#places] ?? 0))
  }

  #startOf(number: number): number {
    return this.#starts[number % this.#places] ?? 0
  }
}
