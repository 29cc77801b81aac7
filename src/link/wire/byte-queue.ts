/** A queue of bytes that uses about as much memory as it holds, however small or sliced the chunks were. */
import { WriteBuffers } from '../../lib/bytes/write-buffers.ts'

/** Size of the blocks that collect small chunks, in bytes. */
const BLOCK_BYTES = 8 * 1024

/** Block size of a queue that holds no more than this, in bytes: most messages are shorter, and come in two parts. */
const SMALL_BLOCK_BYTES = 1024

/** Chunks smaller than this are collected, in bytes. */
const SMALL_BYTES = 2 * 1024

/** Size of the blocks of a queue that grew, in bytes; they are reused, here or in another queue. */
const LARGE_BLOCK_BYTES = 64 * 1024

/** Slots that an empty queue keeps, since it is filled and emptied for every message. */
const KEPT_SLOTS = 16

const largeBlocks = new WriteBuffers({ bytes: LARGE_BLOCK_BYTES, spares: 128 })

export class ByteQueue {
  /** Used from `#first` up to `#end`; the other slots are free. */
  #chunks: (Buffer | undefined)[] = [undefined]
  #first = 0
  #end = 0
  #length = 0
  /** The block that collects chunks, and how much of it is used. */
  #block: Buffer | undefined
  #used = 0
  /** Whether the last chunk ends at the used part of the block, so that it can grow. */
  #isLastInBlock = false
  /** Large blocks that hold bytes of this queue, in order. */
  readonly #borrowed: Buffer[] = []
  /** The block of the bytes that `shift` returned last; they are valid until the next call. */
  #spent: Buffer | undefined

  get length(): number {
    return this.#length
  }

  /** Takes `chunk`, which must not change afterwards. */
  push(chunk: Buffer): void {
    if (chunk.length === 0) return
    const isFirst = this.#length === 0
    // A single small chunk usually leaves at once and is not worth a copy. A slice would keep its whole source alive.
    if (isFirst || (chunk.length >= SMALL_BYTES && chunk.length * 2 >= chunk.buffer.byteLength)) {
      this.#length += chunk.length
      this.#chunks[this.#end++] = chunk
      this.#isLastInBlock = false
      // A large block is returned with the one chunk in it, so it gets no more. Small blocks hold several chunks:
      // otherwise each few bytes between two large chunks would take a block.
      if (this.#block?.length === LARGE_BLOCK_BYTES) this.#block = undefined
    } else this.pushLent(chunk)
  }

  /** Copies `chunk`. */
  pushLent(chunk: Buffer): void {
    if (this.#length === 0 && chunk.length < SMALL_BYTES) {
      this.push(Buffer.from(chunk))
      return
    }
    this.#length += chunk.length
    for (let at = 0; at < chunk.length; ) at += this.#gather(chunk, at)
  }

  /** The next bytes, at most `max` of them and only until the next call; undefined when there are none. */
  shift(max: number): Buffer | undefined {
    this.#giveBackSpent()
    const chunk = this.#chunks[this.#first]
    if (chunk === undefined || max <= 0) return undefined
    if (chunk.length > max) {
      this.#chunks[this.#first] = chunk.subarray(max)
      this.#length -= max
      return chunk.subarray(0, max)
    }
    this.#chunks[this.#first++] = undefined
    this.#length -= chunk.length
    if (chunk.buffer === this.#borrowed[0]?.buffer) this.#spent = this.#borrowed.shift()
    if (this.#length === 0) this.#forget()
    else if (this.#first > 64 && this.#first * 2 > this.#end) {
      this.#chunks = this.#chunks.slice(this.#first, this.#end)
      this.#end -= this.#first
      this.#first = 0
    }
    return chunk
  }

  /** Takes exactly `bytes` bytes, which the caller may keep; undefined, with nothing taken, when there are fewer. */
  take(bytes: number): Buffer | undefined {
    if (this.#length < bytes) return undefined
    const taken = Buffer.allocUnsafe(bytes)
    for (let at = 0; at < bytes; ) at += this.shift(bytes - at)?.copy(taken, at) ?? bytes
    return taken
  }

  /** Drops everything; the bytes that `shift` returned last stay valid. */
  clear(): void {
    this.#spent = undefined
    // The caller of `shift` may still use part of the first block, so that block is left to the garbage collector.
    this.#borrowed.shift()
    for (const block of this.#borrowed) largeBlocks.giveBack(block)
    this.#borrowed.length = 0
    this.#forget()
  }

  #forget(): void {
    if (this.#end > this.#first || this.#chunks.length > KEPT_SLOTS) this.#chunks = [undefined]
    this.#first = 0
    this.#end = 0
    this.#length = 0
    this.#block = undefined
    this.#isLastInBlock = false
  }

  #giveBackSpent(): void {
    if (this.#spent) largeBlocks.giveBack(this.#spent)
    this.#spent = undefined
  }

  /** Copies as much as fits into one block; returns the number of bytes. */
  #gather(chunk: Buffer, at: number): number {
    this.#giveBackSpent()
    if (this.#block === undefined || this.#used === this.#block.length) this.#addBlock(chunk.length - at)
    const block = this.#block ?? chunk // always `#block`: the line above sets it
    const copied = chunk.copy(block, this.#used, at)
    const last = this.#isLastInBlock ? this.#chunks[this.#end - 1] : undefined
    const from = last === undefined ? this.#used : last.byteOffset - block.byteOffset
    this.#used += copied
    const view = block.subarray(from, this.#used)
    if (last === undefined) this.#end++
    this.#chunks[this.#end - 1] = view
    this.#isLastInBlock = true
    return copied
  }

  /** Adds a block; a large one if `bytes` more do not fit into a small one. */
  #addBlock(bytes: number): void {
    // After a full block more chunks are likely; a first block may be for a few bytes only.
    const isNext = this.#isLastInBlock && this.#length > BLOCK_BYTES
    this.#used = 0
    this.#isLastInBlock = false
    if (isNext || bytes > BLOCK_BYTES) {
      this.#block = largeBlocks.borrow()
      this.#borrowed.push(this.#block)
    } else {
      this.#block = Buffer.allocUnsafeSlow(this.#length > SMALL_BLOCK_BYTES ? BLOCK_BYTES : SMALL_BLOCK_BYTES)
    }
  }
}
