/** The frames of WebSocket (RFC 6455 §5), on the server's side: read as they come, written whole. */
import { FrameHead, opcodes } from '../../lib/http/websocket-frame.ts'

export const closeCode = {
  normal: 1000,
  goingAway: 1001,
  protocolError: 1002,
  tooBig: 1009,
  internalError: 1011,
} as const

/** RFC 6455 §5.5 */
const MAX_CONTROL_BYTES = 125

/** Called for the visitor's frames. */
interface FrameEvents {
  /** Bytes of a message as they arrive; a message is never held as a whole. */
  data(bytes: Buffer): void
  ping(payload: Buffer): void
  /** The visitor sends no more. */
  close(): void
}

/**
 * Written by hand: the edge has made the upgrade itself and carries bytes under backpressure. The libraries bring a server
 * and sockets of their own, and messages that they hold until they are whole.
 */
export class FrameReader {
  readonly #events: FrameEvents
  readonly #head = new FrameHead()
  readonly #control = Buffer.alloc(MAX_CONTROL_BYTES)
  /** How many bytes of this frame's payload are left; undefined while its head is read. */
  #remaining: number | undefined
  #read = 0
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
        at = this.#head.take(chunk, at)
        if (this.#head.isStart) fault = this.#judge()
        else if (this.#head.isWhole) fault = this.#begin()
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

  #begin(): number | undefined {
    const { size } = this.#head
    if (!Number.isSafeInteger(size)) return closeCode.tooBig
    this.#remaining = size
    this.#read = 0
    return undefined
  }

  /** Checks the first two bytes by RFC 6455 §5.1 to §5.5. */
  #judge(): number | undefined {
    const { isFinal, reserved, opcode, isMasked, shortLength } = this.#head
    if (reserved !== 0 || !isMasked) return closeCode.protocolError
    if (opcode === opcodes.close || opcode === opcodes.ping || opcode === opcodes.pong) {
      return isFinal && shortLength <= MAX_CONTROL_BYTES ? undefined : closeCode.protocolError
    }
    const continues = opcode === opcodes.continuation
    if (!continues && opcode !== opcodes.text && opcode !== opcodes.binary) return closeCode.protocolError
    // A frame starts a message if none is open, else continues it.
    if (continues !== this.#isInMessage) return closeCode.protocolError
    this.#isInMessage = !isFinal
    return undefined
  }

  #unmask(bytes: Buffer): void {
    const isControl = this.#head.opcode >= opcodes.close
    const plain = isControl ? this.#control.subarray(this.#read) : Buffer.allocUnsafe(bytes.length)
    this.#head.unmask(bytes, plain, this.#read)
    // The mask repeats every four bytes, so the position modulo four is enough; payloads may exceed 32-bit counts.
    this.#read = isControl ? this.#read + bytes.length : (this.#read + bytes.length) & 3
    this.#remaining = (this.#remaining ?? 0) - bytes.length
    if (!isControl) this.#events.data(plain)
  }

  #endFrame(): number | undefined {
    const { opcode } = this.#head
    this.#head.clear()
    this.#remaining = undefined
    if (opcode === opcodes.ping) this.#events.ping(Buffer.from(this.#control.subarray(0, this.#read)))
    if (opcode !== opcodes.close) return undefined
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
  return head(opcodes.binary, length)
}

export function pongFrame(payload: Buffer): Buffer {
  return Buffer.concat([head(opcodes.pong, payload.length), payload])
}

export function closeFrame(code: number): Buffer {
  return Buffer.concat([head(opcodes.close, 2), Buffer.from([code >> 8, code & 0xff])])
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
