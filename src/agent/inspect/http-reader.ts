/**
 * Finds HTTP/1 messages in the passing bytes of one direction of a connection: where heads begin and end, and what is body.
 */
import { KeptBytes } from './kept-bytes.ts'

/** The longest head that is read, in bytes. */
export const HEAD_BYTES = 64 * 1024

/** The longest line with the size of a chunk and its extensions, in bytes. */
const SIZE_LINE_BYTES = 1024

/** What follows a head: a body of that many bytes, chunks, a body up to the end, or another protocol. */
export type BodyFraming = number | 'chunked' | 'until-close' | 'other'

/** Receives what is found. All bytes are lent: they change as soon as the call returns. */
interface HttpSink {
  /** A whole head, with its empty line; returns undefined if it is invalid. */
  head(head: Buffer): BodyFraming | undefined
  body(chunk: Buffer): void
  /** The body is complete. */
  ended(): void
  /** Bytes after a head that was answered with `other`. */
  other(chunk: Buffer): void
}

type State = 'head' | 'length' | 'size' | 'data' | 'data-end' | 'trailer' | 'until-close' | 'other' | 'lost'

const EMPTY_LINE = Buffer.from('\r\n\r\n')
const CR = 0x0d
const LF = 0x0a

/** Only observes: a message that cannot be parsed ends the observation, and nothing else. */
export class HttpReader {
  readonly #sink: HttpSink
  #state: State = 'head'
  /** How many bytes of a body or chunk are still to come. */
  #left = 0
  /** The beginning of an incomplete head. */
  #partial: KeptBytes | undefined
  /** The current line: the text of a chunk size, or the length of a trailer so far. */
  #line = ''
  #lineBytes = 0

  constructor(sink: HttpSink) {
    this.#sink = sink
  }

  /** Whether it could not parse a message, and has stopped. */
  get isLost(): boolean {
    return this.#state === 'lost'
  }

  /** Whether it is between two messages. */
  get isBetween(): boolean {
    return this.#state === 'head' && this.#partial === undefined
  }

  /** Whether the end of the stream ends a body. */
  get endsWithStream(): boolean {
    return this.#state === 'until-close'
  }

  /** Called when all further bytes are of another protocol. */
  becomeOther(): void {
    if (this.#state === 'head') this.#state = 'other'
  }

  read(chunk: Buffer): void {
    let at = 0
    while (at < chunk.length) at = this.#step(chunk, at)
  }

  /** Continues at `at`; returns how far it got. */
  #step(chunk: Buffer, at: number): number {
    switch (this.#state) {
      case 'head':
        return this.#head(chunk, at)
      case 'length':
      case 'data':
        return this.#counted(chunk, at)
      case 'size':
        return this.#size(chunk, at)
      case 'data-end':
      case 'trailer':
        return this.#trailer(chunk, at)
      case 'until-close':
        this.#sink.body(at === 0 ? chunk : chunk.subarray(at))
        return chunk.length
      case 'other':
        this.#sink.other(at === 0 ? chunk : chunk.subarray(at))
        return chunk.length
      case 'lost':
        return chunk.length
      default:
        return this.#state satisfies never
    }
  }

  #head(chunk: Buffer, at: number): number {
    if (this.#partial) return this.#restOfHead(this.#partial, chunk, at)
    // RFC 9112 2.2: an empty line may come before a request.
    if (chunk[at] === CR || chunk[at] === LF) return at + 1
    const end = chunk.indexOf(EMPTY_LINE, at)
    if (end >= 0) {
      this.#begin(chunk.subarray(at, end + EMPTY_LINE.length))
      return end + EMPTY_LINE.length
    }
    this.#partial = new KeptBytes(HEAD_BYTES)
    return this.#keep(this.#partial, chunk.subarray(at), chunk.length)
  }

  #restOfHead(partial: KeptBytes, chunk: Buffer, at: number): number {
    const before = partial.kept
    this.#keep(partial, chunk.subarray(at), chunk.length)
    // The empty line may have begun in an earlier chunk.
    const end = partial.bytes.indexOf(EMPTY_LINE, Math.max(0, before - EMPTY_LINE.length + 1))
    if (end < 0) return chunk.length
    this.#partial = undefined
    const length = end + EMPTY_LINE.length
    this.#begin(partial.bytes.subarray(0, length))
    return at + length - before
  }

  #keep(partial: KeptBytes, rest: Buffer, end: number): number {
    partial.add(rest)
    if (partial.size > HEAD_BYTES && partial.bytes.indexOf(EMPTY_LINE) < 0) {
      this.#state = 'lost'
      this.#partial = undefined
    }
    return end
  }

  #begin(head: Buffer): void {
    const framing = this.#sink.head(head)
    if (framing === undefined) this.#state = 'lost'
    else if (framing === 0) this.#sink.ended()
    else if (typeof framing === 'number') {
      this.#left = framing
      this.#state = 'length'
    } else this.#state = framing === 'chunked' ? 'size' : framing
  }

  #counted(chunk: Buffer, at: number): number {
    const end = Math.min(chunk.length, at + this.#left)
    this.#left -= end - at
    this.#sink.body(at === 0 && end === chunk.length ? chunk : chunk.subarray(at, end))
    if (this.#left > 0) return end
    if (this.#state === 'data') this.#state = 'data-end'
    else this.#finish()
    return end
  }

  /** A line such as `1a3;name=value`. */
  #size(chunk: Buffer, at: number): number {
    const end = chunk.indexOf(LF, at)
    this.#line += chunk.toString('latin1', at, Math.min(end < 0 ? chunk.length : end, at + SIZE_LINE_BYTES))
    if (this.#line.length >= SIZE_LINE_BYTES) this.#state = 'lost'
    if (end < 0) return chunk.length
    const [, digits] = /^([0-9a-f]{1,12})[ \t]*(?:;|\r?$)/i.exec(this.#line) ?? []
    this.#line = ''
    if (digits === undefined) this.#state = 'lost'
    else {
      this.#left = Number.parseInt(digits, 16)
      this.#state = this.#left === 0 ? 'trailer' : 'data'
    }
    return end + 1
  }

  /** The line break after a chunk, or the lines after the last chunk, which an empty line ends. */
  #trailer(chunk: Buffer, at: number): number {
    const end = chunk.indexOf(LF, at)
    const length = (end < 0 ? chunk.length : end) - at - (end > at && chunk[end - 1] === CR ? 1 : 0)
    // The CR of a line break that is split between chunks is not counted.
    if (!(end < 0 && length === 1 && chunk[at] === CR)) this.#lineBytes += length
    if (this.#lineBytes > HEAD_BYTES) this.#state = 'lost'
    if (end < 0) return chunk.length
    const isEmpty = this.#lineBytes === 0
    this.#lineBytes = 0
    if (this.#state === 'data-end') this.#state = isEmpty ? 'size' : 'lost'
    else if (isEmpty) this.#finish()
    return end + 1
  }

  #finish(): void {
    this.#state = 'head'
    this.#sink.ended()
  }
}
