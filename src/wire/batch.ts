/** Frames on their way out: headers and small bodies lie side by side in one block, large bodies are passed by reference. */
import { FRAME_HEADER_BYTES, frameTypes } from './frame.ts'

/** Size of the blocks that headers are written into, in bytes. */
const BLOCK_BYTES = 16 * 1024

/** Bodies up to this size are copied, in bytes: cheaper than one more piece in a gathered write. */
const COPIED_BYTES = 1024

export class Batch {
  #block = Buffer.allocUnsafeSlow(BLOCK_BYTES)
  /** Where the part of the block that is not yet in `#pieces` begins and ends. */
  #start = 0
  #end = 0
  #pieces: Buffer[] = []
  #bytes = 0

  /** How many bytes `take` would give. */
  get bytes(): number {
    return this.#bytes
  }

  /** Begins a DATA frame; exactly `length` bytes of `body` must follow. */
  data(id: number, flags: number, length: number): void {
    this.#header(frameTypes.DATA, flags, id, length)
  }

  body(piece: Buffer): void {
    this.#bytes += piece.length
    if (piece.length <= COPIED_BYTES) {
      this.#room(piece.length)
      this.#end += piece.copy(this.#block, this.#end)
      return
    }
    this.#cut()
    this.#pieces.push(piece)
  }

  reset(id: number, code: number): void {
    this.#header(frameTypes.RST, 0, id, 4)
    this.#uint32(code)
  }

  /** `increment` must not be zero: agents end the session over it. */
  credit(id: number, increment: number): void {
    this.#header(frameTypes.WNDINC, 0, id, 4)
    this.#uint32(increment)
  }

  goAway(lastId: number, code: number, text: Buffer): void {
    this.#header(frameTypes.GOAWAY, 0, 0, 8 + text.length)
    this.#uint32(lastId)
    this.#uint32(code)
    this.body(text)
  }

  /** All that was written since the last call. */
  take(): readonly Buffer[] {
    this.#cut()
    const pieces = this.#pieces
    this.#pieces = []
    this.#bytes = 0
    return pieces
  }

  #header(type: number, flags: number, id: number, length: number): void {
    this.#room(FRAME_HEADER_BYTES)
    this.#block.writeUIntBE(length, this.#end, 3)
    this.#block[this.#end + 3] = (type << 4) | flags
    this.#block.writeUInt32BE(id, this.#end + 4)
    this.#end += FRAME_HEADER_BYTES
    this.#bytes += FRAME_HEADER_BYTES
  }

  #uint32(value: number): void {
    this.#room(4)
    this.#end = this.#block.writeUInt32BE(value, this.#end)
    this.#bytes += 4
  }

  /** What is written is never written over: the transport may still hold it. */
  #room(bytes: number): void {
    if (this.#end + bytes <= this.#block.length) return
    this.#cut()
    this.#block = Buffer.allocUnsafeSlow(BLOCK_BYTES)
    this.#start = 0
    this.#end = 0
  }

  #cut(): void {
    if (this.#end > this.#start) this.#pieces.push(this.#block.subarray(this.#start, this.#end))
    this.#start = this.#end
  }
}
