/** Keeps the latest records in a fixed amount of memory: new ones replace the oldest. */

interface RecordRingOptions {
  /** Memory for everything, in bytes. */
  readonly bytes: number
  /** Size of a small record, in bytes; it decides how many places for records there are. */
  readonly usualBytes: number
}

/** Bytes of a record's place: where it begins and how long it is, two numbers. */
const SLOT_BYTES = 16

/** All records are in one buffer, so that the garbage collector has nothing to trace. */
export class RecordRing {
  /** The memory for records; see `room`. */
  readonly bytes: Buffer
  readonly #size: number
  readonly #slots: number
  /** Where each record begins, as if the buffer had no end. */
  readonly #starts: Float64Array
  readonly #lengths: Float64Array
  #oldest = 0
  #next = 0
  /** Where the next record begins: as if the buffer had no end, and in the buffer. */
  #head = 0
  #at = 0
  /** The places of the oldest record and of the next; computing them by division would cost more than all the rest. */
  #oldestSlot = 0
  #nextSlot = 0

  constructor({ bytes, usualBytes }: RecordRingOptions) {
    this.#slots = Math.max(1, Math.floor(bytes / (usualBytes + SLOT_BYTES)))
    this.#size = Math.max(1, bytes - this.#slots * SLOT_BYTES)
    // The system allocates the memory only when it is first written.
    this.bytes = Buffer.alloc(this.#size)
    this.#starts = new Float64Array(this.#slots)
    this.#lengths = new Float64Array(this.#slots)
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
   * Makes room for a record of at most `length` bytes; returns where in `bytes` it must be written at once, before
   * `keep`, or -1 when it never fits.
   */
  room(length: number): number {
    const size = this.#size
    if (length > size) return -1
    // A record is contiguous, so the rest of the buffer's end may stay empty.
    if (this.#at + length > size) {
      this.#head += size - this.#at
      this.#at = 0
    }
    const free = this.#head + length - size
    while (
      this.#oldest < this.#next &&
      (this.#next - this.#oldest === this.#slots || (this.#starts[this.#oldestSlot] ?? 0) < free)
    ) {
      this.#oldest++
      if (++this.#oldestSlot === this.#slots) this.#oldestSlot = 0
    }
    return this.#at
  }

  /** Adds the record that was written into the room; `length` is its true length. */
  keep(length: number): void {
    this.#starts[this.#nextSlot] = this.#head
    this.#lengths[this.#nextSlot] = length
    this.#next++
    if (++this.#nextSlot === this.#slots) this.#nextSlot = 0
    this.#head += length
    this.#at += length
  }

  /** A record by its number, while it is there. The bytes are lent: a later record may overwrite them. */
  read(number: number): Buffer | undefined {
    if (!(number >= this.#oldest && number < this.#next)) return undefined
    const slot = number % this.#slots
    const start = (this.#starts[slot] ?? 0) % this.#size
    return this.bytes.subarray(start, start + (this.#lengths[slot] ?? 0))
  }
}
