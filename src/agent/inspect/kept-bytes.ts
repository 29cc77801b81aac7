/** A copy of the first passing bytes, up to a limit, and the count of all of them. */

/** The least growth of the memory, in bytes. */
const LEAST_GROWTH = 1024

export class KeptBytes {
  readonly #limit: number
  #memory: Buffer | undefined
  #kept = 0
  #size = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  /** How many passed. */
  get size(): number {
    return this.#size
  }

  /** How many of them are kept. */
  get kept(): number {
    return this.#kept
  }

  get bytes(): Buffer {
    return this.#memory?.subarray(0, this.#kept) ?? Buffer.alloc(0)
  }

  /** Copies what fits of `chunk`; returns how much the memory grew, in bytes. */
  add(chunk: Buffer): number {
    this.#size += chunk.length
    const length = Math.min(chunk.length, this.#limit - this.#kept)
    if (length <= 0) return 0
    const grown = this.#makeRoom(length)
    chunk.copy(this.#memory as Buffer, this.#kept, 0, length) // there is room for it now
    this.#kept += length
    return grown
  }

  /** Doubles the memory, so that a body of many small chunks is not copied for each of them. */
  #makeRoom(length: number): number {
    const before = this.#memory?.length ?? 0
    const needed = this.#kept + length
    if (needed <= before) return 0
    const wanted = before === 0 ? needed : Math.min(this.#limit, Math.max(needed, before * 2, LEAST_GROWTH))
    // Not from Node's pool: a tiny body would keep 64 KiB of it alive.
    const memory = Buffer.allocUnsafeSlow(wanted)
    this.#memory?.copy(memory, 0, 0, this.#kept)
    this.#memory = memory
    return wanted - before
  }
}
