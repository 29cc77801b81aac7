/** Finds WebSocket frames in the passing bytes of one direction of a connection (RFC 6455). */
import { KeptBytes } from './kept-bytes.ts'

/** How much of one frame or event is kept, in bytes. */
export const FRAME_BYTES = 64 * 1024

const frameTypes = {
  0: 'continuation',
  1: 'text',
  2: 'binary',
  8: 'close',
  9: 'ping',
  10: 'pong',
} as const

export type WebSocketFrameType = (typeof frameTypes)[keyof typeof frameTypes]

export interface WebSocketFrame {
  readonly type: WebSocketFrameType
  /** Whether the frame is the last of its message. */
  readonly isLast: boolean
  /** Whether the bytes are compressed, by a negotiated extension. */
  readonly isCompressed: boolean
  /** The size of its content, in bytes. */
  readonly size: number
  /** The first bytes of the content, as they were sent. */
  readonly bytes: Buffer
  /** The mask of the content; undefined if it is not masked. */
  readonly mask: Buffer | undefined
}

/** The longest head of a frame, in bytes. */
const HEAD_BYTES = 14

export class WebSocketReader {
  readonly #onFrame: (frame: WebSocketFrame) => void
  readonly #head = Buffer.alloc(HEAD_BYTES)
  #headLength = 0
  #frame: { readonly content: KeptBytes; left: number; readonly mask: Buffer | undefined } | undefined
  #isLost = false

  constructor(onFrame: (frame: WebSocketFrame) => void) {
    this.#onFrame = onFrame
  }

  get isLost(): boolean {
    return this.#isLost
  }

  read(chunk: Buffer): void {
    let at = 0
    while (at < chunk.length && !this.#isLost) at = this.#frame ? this.#content(chunk, at) : this.#begin(chunk, at)
  }

  #begin(chunk: Buffer, at: number): number {
    this.#head[this.#headLength++] = chunk[at] ?? 0
    const [, second = 0] = this.#head
    const short = second & 0x7f
    const lengthBytes = short === 126 ? 2 : short === 127 ? 8 : 0
    const isMasked = second >= 0x80
    if (this.#headLength < 2 || this.#headLength < 2 + lengthBytes + (isMasked ? 4 : 0)) return at + 1
    const size = lengthBytes === 0 ? short : readSize(this.#head, lengthBytes)
    const mask = isMasked ? Buffer.from(this.#head.subarray(2 + lengthBytes, 6 + lengthBytes)) : undefined
    if (this.#type === undefined || size > Number.MAX_SAFE_INTEGER) this.#isLost = true
    this.#frame = { content: new KeptBytes(FRAME_BYTES), left: size, mask }
    if (size === 0) this.#finish()
    return at + 1
  }

  #content(chunk: Buffer, at: number): number {
    const frame = this.#frame
    if (!frame) return at
    const end = Math.min(chunk.length, at + frame.left)
    frame.content.add(chunk.subarray(at, end))
    frame.left -= end - at
    if (frame.left === 0) this.#finish()
    return end
  }

  #finish(): void {
    const frame = this.#frame
    const type = this.#type
    this.#frame = undefined
    this.#headLength = 0
    if (!frame || type === undefined) return
    const [first = 0] = this.#head
    const { content, mask } = frame
    this.#onFrame({
      ...{ type, mask, size: content.size, bytes: content.bytes },
      isLast: first >= 0x80,
      isCompressed: (first & 0x40) !== 0,
    })
  }

  get #type(): WebSocketFrameType | undefined {
    const opcode = (this.#head[0] ?? 0) & 0x0f
    return Object.hasOwn(frameTypes, opcode) ? frameTypes[opcode as keyof typeof frameTypes] : undefined // a key of it
  }
}

function readSize(head: Buffer, lengthBytes: number): number {
  return lengthBytes === 2 ? head.readUInt16BE(2) : Number(head.readBigUInt64BE(2))
}

/** The content of a frame without its mask. */
export function unmasked({ bytes, mask }: Pick<WebSocketFrame, 'bytes' | 'mask'>): Buffer {
  if (!mask) return bytes
  const content = Buffer.from(bytes)
  for (let i = 0; i < content.length; i++) content[i] = (content[i] ?? 0) ^ (mask[i & 3] ?? 0)
  return content
}
