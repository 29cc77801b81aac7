/** The frames of the multiplexer: their layout, and a decoder that passes on bytes as they arrive and buffers none. */
import { GOAWAY_TEXT_BYTES } from './wire-bounds.ts'
import { type WireCode, WireError } from './wire-error.ts'

export const frameTypes = { RST: 0x0, DATA: 0x1, WNDINC: 0x2, GOAWAY: 0x3 } as const

/** Flags of DATA. */
export const FIN = 0x1
export const SYN = 0x2

export const FRAME_HEADER_BYTES = 8

/** Receives decoded frames; a DATA body is passed on in the pieces in which it arrived. */
export interface FrameSink {
  dataBegins(id: number, flags: number, length: number): void
  dataPiece(piece: Buffer): void
  dataEnds(flags: number): void
  reset(id: number, code: number): void
  credit(id: number, increment: number): void
  goAway(lastId: number, code: number, text: string): void
  /** The peer violated the protocol; nothing more is decoded. */
  broken(error: WireError): void
}

/** After `dataBegins` with an empty body, `dataEnds` follows at once; a length is known before the body is read. */
export class FrameDecoder {
  readonly #sink: FrameSink
  /** Collects a header or control body that arrived in parts. */
  readonly #parts = Buffer.alloc(FRAME_HEADER_BYTES)
  #partsLength = 0
  #inBody = false
  #type = 0
  #flags = 0
  #id = 0
  /** Bytes of the body still to come. */
  #left = 0
  #stopped = false

  constructor(sink: FrameSink) {
    this.#sink = sink
  }

  /** Stops decoding. */
  stop(): void {
    this.#stopped = true
  }

  /** Decodes `chunk`; the pieces passed on are views of it. */
  push(chunk: Buffer): void {
    let at = 0
    // An empty body ends without a byte, so the loop also runs when nothing is left of the chunk.
    while (!this.#stopped && (at < chunk.length || (this.#inBody && this.#left === 0))) {
      at = this.#inBody ? this.#body(chunk, at) : this.#header(chunk, at)
    }
  }

  #header(chunk: Buffer, at: number): number {
    if (this.#partsLength === 0 && chunk.length - at >= FRAME_HEADER_BYTES) {
      this.#begin(chunk, at)
      return at + FRAME_HEADER_BYTES
    }
    const end = this.#gather(chunk, at, FRAME_HEADER_BYTES)
    if (this.#partsLength === FRAME_HEADER_BYTES) {
      this.#partsLength = 0
      this.#begin(this.#parts, 0)
    }
    return end
  }

  #begin(bytes: Buffer, at: number): void {
    const head = bytes.readUInt32BE(at)
    this.#left = head >>> 8
    this.#type = (head >>> 4) & 0xf
    this.#flags = head & 0xf
    // The top bit is reserved; our peers mask it too.
    this.#id = bytes.readUInt32BE(at + 4) & 0x7fffffff
    this.#inBody = true
    switch (this.#type) {
      case frameTypes.DATA:
        if (this.#id === 0) this.#fail('protocol_error', 'DATA on stream 0')
        else this.#sink.dataBegins(this.#id, this.#flags, this.#left)
        break
      case frameTypes.RST:
      case frameTypes.WNDINC:
        if (this.#left !== 4) this.#fail('frame_size_error', 'a body that must have 4 bytes')
        else if (this.#id === 0) this.#fail('protocol_error', 'a control frame on stream 0')
        break
      case frameTypes.GOAWAY:
        if (this.#left < 8) this.#fail('frame_size_error', 'GOAWAY of less than 8 bytes')
        break
      default: // unknown types are skipped
    }
  }

  #body(chunk: Buffer, at: number): number {
    if (this.#type === frameTypes.GOAWAY) return this.#goAway(chunk, at)
    if (this.#type === frameTypes.RST || this.#type === frameTypes.WNDINC) return this.#control(chunk, at)
    const end = Math.min(chunk.length, at + this.#left)
    this.#left -= end - at
    const isData = this.#type === frameTypes.DATA
    if (isData && end > at) this.#sink.dataPiece(end - at === chunk.length ? chunk : chunk.subarray(at, end))
    if (this.#left === 0) {
      this.#inBody = false
      if (isData) this.#sink.dataEnds(this.#flags)
    }
    return end
  }

  #control(chunk: Buffer, at: number): number {
    if (this.#partsLength === 0 && chunk.length - at >= 4) {
      this.#controlled(chunk.readUInt32BE(at))
      return at + 4
    }
    const end = this.#gather(chunk, at, 4)
    if (this.#partsLength === 4) {
      this.#partsLength = 0
      this.#controlled(this.#parts.readUInt32BE(0))
    }
    return end
  }

  #controlled(value: number): void {
    this.#inBody = false
    if (this.#type === frameTypes.RST) this.#sink.reset(this.#id, value)
    else if ((value & 0x7fffffff) === 0) this.#fail('protocol_error', 'WNDINC of zero')
    else this.#sink.credit(this.#id, value & 0x7fffffff)
  }

  /** Peers disagree on the length of a GOAWAY, so it is the last frame read, with as much text as has arrived. */
  #goAway(chunk: Buffer, at: number): number {
    const end = this.#gather(chunk, at, 8)
    if (this.#partsLength < 8) return end
    this.#stopped = true
    const text = chunk.subarray(end, end + Math.min(this.#left - 8, GOAWAY_TEXT_BYTES)).toString('utf8')
    this.#sink.goAway(this.#parts.readUInt32BE(0), this.#parts.readUInt32BE(4), text)
    return chunk.length
  }

  #gather(chunk: Buffer, at: number, wanted: number): number {
    const end = Math.min(chunk.length, at + wanted - this.#partsLength)
    this.#partsLength += chunk.copy(this.#parts, this.#partsLength, at, end)
    return end
  }

  #fail(code: WireCode, what: string): void {
    this.#stopped = true
    this.#sink.broken(new WireError(code, 'peer', `the peer sent ${what}`))
  }
}
