/** Finds WebSocket frames in the passing bytes of one direction of a connection (RFC 6455). */
import { FrameHead, opcodes } from '../../lib/http/websocket-frame.ts'
import { KeptBytes } from './kept-bytes.ts'

/** How much of one frame or event is kept, in bytes. */
export const FRAME_BYTES = 64 * 1024

const frameTypes = Object.keys(opcodes) as (keyof typeof opcodes)[] // an object literal

export type WebSocketFrameType = keyof typeof opcodes

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

export class WebSocketReader {
  readonly #onFrame: (frame: WebSocketFrame) => void
  readonly #head = new FrameHead()
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
    const end = this.#head.take(chunk, at)
    if (!this.#head.isWhole) return end
    const { size, isMasked } = this.#head
    const mask = isMasked ? this.#head.mask() : undefined
    if (this.#type === undefined || size > Number.MAX_SAFE_INTEGER) this.#isLost = true
    this.#frame = { content: new KeptBytes(FRAME_BYTES), left: size, mask }
    if (size === 0) this.#finish()
    return end
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
    const { isFinal, reserved } = this.#head
    this.#frame = undefined
    this.#head.clear()
    if (!frame || type === undefined) return
    const { content, mask } = frame
    this.#onFrame({
      ...{ type, mask, size: content.size, bytes: content.bytes },
      isLast: isFinal,
      isCompressed: (reserved & 0x40) !== 0,
    })
  }

  get #type(): WebSocketFrameType | undefined {
    return frameTypes.find((type) => opcodes[type] === this.#head.opcode)
  }
}

/** The content of a frame without its mask. */
export function unmask({ bytes, mask }: Pick<WebSocketFrame, 'bytes' | 'mask'>): Buffer {
  if (!mask) return bytes
  const content = Buffer.from(bytes)
  for (let i = 0; i < content.length; i++) content[i] = (content[i] ?? 0) ^ (mask[i & 3] ?? 0)
  return content
}
