/**
 * The frames of WebSocket (RFC 6455 §5), on the server's side: read as they come, written whole.
 *
 * Written by hand: the edge has made the upgrade itself and carries bytes under backpressure. The libraries bring a
 * server and sockets of their own, and messages that they hold until they are whole.
 */

export const closeCode = {
  normal: 1000,
  goingAway: 1001,
  protocolError: 1002,
  tooBig: 1009,
  internalError: 1011,
} as const

const opcode = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const

/** RFC 6455 §5.5 */
const MAX_CONTROL_BYTES = 125
const MIN_HEAD_BYTES = 2
const MASK_BYTES = 4
/** A head with the longest form of the length. */
const MAX_HEAD_BYTES = MIN_HEAD_BYTES + 8 + MASK_BYTES

/** Called for the visitor's frames. */
interface FrameEvents {
  /** Bytes of a message as they arrive; a message is never held as a whole. */
  data(bytes: Buffer): void
  ping(payload: Buffer): void
  /** The visitor sends no more. */
  close(): void
}

export class FrameReader {
  readonly #events: FrameEvents
  readonly #head = Buffer.alloc(MAX_HEAD_BYTES)
  readonly #control = Buffer.alloc(MAX_CONTROL_BYTES)
  /** How many bytes of the head have arrived, and how many are needed for the next step. */
  #headBytes = 0
  #headNeed = MIN_HEAD_BYTES
  /** How many bytes of this frame's payload are left; undefined while its head is read. */
  #remaining: number | undefined
  #read = 0
  #maskAt = 0
  #opcode: number = opcode.continuation
  #isInMessage = false
  #isClosed = false

  constructor(events: FrameEvents) {
    this.#events = events
  }

  /** Reads the next bytes; returns the close code when they violate the protocol. */
  read(chunk: Buffer): number | undefined {
    for (let at = 0; at < chunk.length && !this.#isClosed; ) {
      let fault: number | undefined
      if (this.#remaining === undefined) {
        const copied = chunk.copy(this.#head, this.#headBytes, at, at + this.#headNeed - this.#headBytes)
        this.#headBytes += copied
        at += copied
        if (this.#headBytes === this.#headNeed) fault = this.#readHead()
      } else {
        const end = Math.min(chunk.length, at + this.#remaining)
        this.#unmask(chunk.subarray(at, end))
        at = end
      }
      if (this.#remaining === 0) fault = this.#endFrame()
      if (fault !== undefined) {
        this.#isClosed = true
        return fault
      }
    }
    return undefined
  }

  /** The first two bytes give the length of the head; the whole head gives that of the payload. */
  #readHead(): number | undefined {
    const [first, second] = [this.#head[0] ?? 0, this.#head[1] ?? 0]
    const length = second & 0x7f
    const lengthBytes = length < 126 ? 0 : length === 126 ? 2 : 8
    this.#maskAt = MIN_HEAD_BYTES + lengthBytes
    if (this.#headNeed === MIN_HEAD_BYTES) {
      this.#headNeed = this.#maskAt + MASK_BYTES
      return this.#judge(first, (second & 0x80) !== 0, length)
    }
    const size = lengthBytes === 8 ? Number(this.#head.readBigUInt64BE(2)) : this.#head.readUInt16BE(2)
    if (lengthBytes > 0 && !Number.isSafeInteger(size)) return closeCode.tooBig
    this.#opcode = first & 0x0f
    this.#remaining = lengthBytes === 0 ? length : size
    this.#read = 0
    this.#headBytes = 0
    this.#headNeed = MIN_HEAD_BYTES
    return undefined
  }

  /** Checks the first two bytes by RFC 6455 §5.1 to §5.5. */
  #judge(first: number, isMasked: boolean, length: number): number | undefined {
    const [isFinal, reserved, code] = [(first & 0x80) !== 0, first & 0x70, first & 0x0f]
    if (reserved !== 0 || !isMasked) return closeCode.protocolError
    if (code === opcode.close || code === opcode.ping || code === opcode.pong) {
      return isFinal && length <= MAX_CONTROL_BYTES ? undefined : closeCode.protocolError
    }
    const continues = code === opcode.continuation
    if (!continues && code !== opcode.text && code !== opcode.binary) return closeCode.protocolError
    // A frame starts a message if none is open, else continues it.
    if (continues !== this.#isInMessage) return closeCode.protocolError
    this.#isInMessage = !isFinal
    return undefined
  }

  #unmask(bytes: Buffer): void {
    const isControl = this.#opcode >= opcode.close
    const plain = isControl ? this.#control.subarray(this.#read) : Buffer.allocUnsafe(bytes.length)
    for (let i = 0; i < bytes.length; i++) {
      plain[i] = (bytes[i] ?? 0) ^ (this.#head[this.#maskAt + ((this.#read + i) & 3)] ?? 0)
    }
    // The mask repeats every four bytes, so the position modulo four is enough; payloads may exceed 32-bit counts.
    this.#read = isControl ? this.#read + bytes.length : (this.#read + bytes.length) & 3
    this.#remaining = (this.#remaining ?? 0) - bytes.length
    if (!isControl) this.#events.data(plain)
  }

  #endFrame(): number | undefined {
    this.#remaining = undefined
    if (this.#opcode === opcode.ping) this.#events.ping(Buffer.from(this.#control.subarray(0, this.#read)))
    if (this.#opcode !== opcode.close) return undefined
    if (this.#read === 1 || (this.#read > 1 && !isCloseCode(this.#control.readUInt16BE()))) {
      return closeCode.protocolError
    }
    this.#isClosed = true
    this.#events.close()
    return undefined
  }
}

/** RFC 6455 §7.4: whether a frame may hold this code. */
function isCloseCode(code: number): boolean {
  return (code >= 1000 && code <= 1014 && ![1004, 1005, 1006].includes(code)) || (code >= 3000 && code <= 4999)
}

/** The head of a binary message of `length` bytes. */
export function binaryHead(length: number): Buffer {
  return head(opcode.binary, length)
}

export function pongFrame(payload: Buffer): Buffer {
  return Buffer.concat([head(opcode.pong, payload.length), payload])
}

export function closeFrame(code: number): Buffer {
  return Buffer.concat([head(opcode.close, 2), Buffer.from([code >> 8, code & 0xff])])
}

function head(code: number, length: number): Buffer {
  if (length < 126) return Buffer.from([0x80 | code, length])
  const bytes = Buffer.alloc(length < 0x1_0000 ? 4 : 10)
  bytes[0] = 0x80 | code
  bytes[1] = length < 0x1_0000 ? 126 : 127
  if (length < 0x1_0000) bytes.writeUInt16BE(length, 2)
  else bytes.writeBigUInt64BE(BigInt(length), 2)
  return bytes
}
