/** Bytes that wait, in order, in memory of about their own size however small or sliced the chunks were. */
import { noteRead } from '../lib/read-memory.ts'

/** Size of the blocks that small chunks are gathered in, in bytes. */
const BLOCK_BYTES = 8 * 1024

/** Chunks under this size are gathered, in bytes. */
const SMALL_BYTES = 2 * 1024

export class ByteQueue {
  #chunks: Buffer[] = []
  #first = 0
  #length = 0
  /** The block that small chunks go to, and how much of it is used. */
  #block: Buffer | undefined
  #used = 0

  get length(): number {
    return this.#length
  }

  push(chunk: Buffer): void {
    if (chunk.length === 0) return
    const isFirst = this.#length === 0
    this.#length += chunk.length
    // A lone small chunk most often leaves at once, so it is not worth a copy. A slice would keep all of its source.
    if (isFirst || (chunk.length >= SMALL_BYTES && chunk.length * 2 >= chunk.buffer.byteLength)) {
      this.#chunks.push(chunk)
    } else this.#gather(chunk)
  }

  /** The same for bytes that are only lent. */
  pushLent(chunk: Buffer): void {
    if (chunk.length === 0) return
    this.#length += chunk.length
    this.#gather(chunk)
  }

  /** The next bytes, at most `max` of them and without copying; undefined when there are none. */
  shift(max: number): Buffer | undefined {
    const chunk = this.#chunks[this.#first]
    if (chunk === undefined || max <= 0) return undefined
    if (chunk.length > max) {
      this.#chunks[this.#first] = chunk.subarray(max)
      this.#length -= max
      return chunk.subarray(0, max)
    }
    this.#first++
    this.#length -= chunk.length
    if (this.#length === 0) this.clear()
    else if (this.#first > 64 && this.#first * 2 > this.#chunks.length) {
      this.#chunks = this.#chunks.slice(this.#first)
      this.#first = 0
    }
    return chunk
  }

  /** Exactly `bytes` bytes; undefined, and nothing taken, when there are fewer. */
  take(bytes: number): Buffer | undefined {
    if (this.#length < bytes) return undefined
    const first = this.shift(bytes) ?? Buffer.alloc(0)
    if (first.length === bytes) return first
    const parts = [first]
    for (let left = bytes - first.length; left > 0; ) {
      const part = this.shift(left) ?? Buffer.alloc(0)
      parts.push(part)
      left -= part.length
    }
    return Buffer.concat(parts, bytes)
  }

  clear(): void {
    this.#chunks = []
    this.#first = 0
    this.#length = 0
    this.#block = undefined
  }

  #gather(chunk: Buffer): void {
    if (this.#block === undefined || this.#block.length - this.#used < chunk.length) {
      noteRead(chunk.length)
      this.#block = Buffer.allocUnsafeSlow(Math.max(BLOCK_BYTES, chunk.length))
      this.#used = 0
    }
    const block = this.#block
    const from = this.#used
    this.#used += chunk.copy(block, from)
    const last = this.#chunks.at(-1)
    const joins = last?.buffer === block.buffer && last.byteOffset + last.length === block.byteOffset + from
    if (last && joins) this.#chunks[this.#chunks.length - 1] = grown(block, last, this.#used)
    else this.#chunks.push(block.subarray(from, this.#used))
  }
}

function grown(block: Buffer, view: Buffer, end: number): Buffer {
  return block.subarray(view.byteOffset - block.byteOffset, end)
}
