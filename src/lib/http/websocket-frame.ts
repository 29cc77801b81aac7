/** Reads the heads of WebSocket frames (RFC 6455 §5.2) as their bytes come. */

export const opcodes = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const

/** The first two bytes, which give the length of the head. */
const START_BYTES = 2
const MASK_BYTES = 4
/** A head with the longest form of the length. */
const MAX_HEAD_BYTES = START_BYTES + 8 + MASK_BYTES

export class FrameHead {
  readonly #bytes = Buffer.alloc(MAX_HEAD_BYTES)
  /** How many bytes have arrived, and how many are needed for the next step. */
  #length = 0
  #need = START_BYTES

  /** Takes bytes from `at` on, up to the end of the first two or of the head; returns where it stopped. */
  take(chunk: Buffer, at: number): number {
    let next = at
    // For so few bytes a loop is faster than `copy`.
    while (this.#length < this.#need && next < chunk.length) this.#bytes[this.#length++] = chunk[next++] ?? 0
    if (this.#length === START_BYTES) this.#need = this.#maskAt + (this.isMasked ? MASK_BYTES : 0)
    return next
  }

  /** Whether exactly the first two bytes have arrived: all but the mask and a longer length. */
  get isStart(): boolean {
    return this.#length === START_BYTES
  }

  get isWhole(): boolean {
    return this.#length >= START_BYTES && this.#length === this.#need
  }

  get isFinal(): boolean {
    return ((this.#bytes[0] ?? 0) & 0x80) !== 0
  }

  get reserved(): number {
    return (this.#bytes[0] ?? 0) & 0x70
  }

  get opcode(): number {
    return (this.#bytes[0] ?? 0) & 0x0f
  }

  get isMasked(): boolean {
    return ((this.#bytes[1] ?? 0) & 0x80) !== 0
  }

  /** The length of the content, or 126 or 127 when it is in the bytes that follow. */
  get shortLength(): number {
    return (this.#bytes[1] ?? 0) & 0x7f
  }

  /** The length of the content in bytes, once the head is whole; it may be no safe integer. */
  get size(): number {
    const short = this.shortLength
    if (short < 126) return short
    return short === 126 ? this.#bytes.readUInt16BE(START_BYTES) : Number(this.#bytes.readBigUInt64BE(START_BYTES))
  }

  /** Writes content without its mask to `plain`. `at` counts the bytes of the same frame that came before. */
  unmask(content: Buffer, plain: Buffer, at: number): void {
    const mask = this.#bytes
    const maskAt = this.#maskAt
    for (let i = 0; i < content.length; i++) plain[i] = (content[i] ?? 0) ^ (mask[maskAt + ((at + i) & 3)] ?? 0)
  }

  /** A copy. */
  mask(): Buffer {
    return Buffer.from(this.#bytes.subarray(this.#maskAt, this.#maskAt + MASK_BYTES))
  }

  /** To read the head of the next frame. */
  clear(): void {
    this.#length = 0
    this.#need = START_BYTES
  }

  get #maskAt(): number {
    const short = this.shortLength
    return START_BYTES + (short < 126 ? 0 : short === 126 ? 2 : 8)
  }
}
