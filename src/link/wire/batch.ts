/** Collects outgoing frames in memory that is borrowed until the transport has sent them. */
import { LENT_BYTES } from '../../lib/bytes/borrowed-reads.ts'
import { WriteBuffers } from '../../lib/bytes/write-buffers.ts'
import { FRAME_HEADER_BYTES, frameTypes } from './frame.ts'
import type { Transport } from './transport.ts'
import { BATCH_BYTES } from './wire-bounds.ts'

/** Room for all control frames of a turn, in bytes: the most pending resets, and a GOAWAY. */
const CONTROL_BYTES = 24 * 1024

/** Memory of a batch, in bytes: a batch that is not full can take another whole socket read. */
const STAGE_BYTES = BATCH_BYTES + LENT_BYTES + 2 * CONTROL_BYTES

/**
 * Batches up to this size are copied to memory of their exact size, in bytes: many sessions may wait with a few frames
 * each.
 */
const SMALL_BYTES = 4 * 1024

const stages = new WriteBuffers({ bytes: STAGE_BYTES, spares: 32 })

export class Batch {
  #stage: Buffer | undefined
  #bytes = 0

  /** Bytes written since it was last sent. */
  get bytes(): number {
    return this.#bytes
  }

  /** Whether further frames should wait for the next batch. */
  get isFull(): boolean {
    return this.#bytes >= BATCH_BYTES
  }

  /** The longest body of a DATA frame that fits, in bytes. */
  get room(): number {
    return STAGE_BYTES - CONTROL_BYTES - FRAME_HEADER_BYTES - this.#bytes
  }

  /** Begins a DATA frame; calls of `body` must follow with exactly `length` bytes, at most `room`. */
  data(id: number, flags: number, length: number): void {
    this.#header(frameTypes.DATA, flags, id, length)
  }

  /** Copies `piece`. */
  body(piece: Buffer): void {
    this.#memory().set(piece, this.#bytes)
    this.#bytes += piece.length
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

  /** Sends everything written to `transport`; false asks to wait for room. */
  sendTo(transport: Transport): boolean {
    const stage = this.#memory()
    const bytes = stage.subarray(0, this.#bytes)
    this.#stage = undefined
    this.#bytes = 0
    if (bytes.length > SMALL_BYTES) return transport.write(bytes, () => stages.giveBack(stage))
    const copy = Buffer.from(bytes)
    stages.giveBack(stage)
    return transport.write(copy)
  }

  #memory(): Buffer {
    this.#stage ??= stages.borrow()
    return this.#stage
  }

  #header(type: number, flags: number, id: number, length: number): void {
    const memory = this.#memory()
    const at = this.#bytes
    // Three bytes of length, then type and flags.
    memory.writeUInt32BE(length * 0x100 + ((type << 4) | flags), at)
    memory.writeUInt32BE(id, at + 4)
    this.#bytes += FRAME_HEADER_BYTES
  }

  #uint32(value: number): void {
    this.#bytes = this.#memory().writeUInt32BE(value, this.#bytes)
  }
}
