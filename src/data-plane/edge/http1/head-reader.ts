/** Collects the bytes of a head until it is complete; a head in one chunk, as most are, is not copied. */
import { CR, DELETE, LF, SPACE, TAB } from './characters.ts'
import { HeadFault, malformedHead } from './head-fault.ts'

const empty: Buffer = Buffer.alloc(0)
const BLANK_LINE = Buffer.from('\r\n\r\n', 'latin1')

/** Initial buffer for a head that comes in several chunks, in bytes; it doubles from there. */
const FIRST_BYTES = 1024

/** How far the end of a head is searched byte by byte, in bytes. */
const NEAR_BYTES = 512

/** Complete lines: the bytes from `from` up to `to`, with the last line break and without the blank line. */
export interface Head {
  readonly bytes: Buffer
  readonly from: number
  readonly to: number
  /** The same as a string: slicing it is cheaper than decoding each part. */
  readonly text: string
}

export class HeadReader implements Head {
  bytes: Buffer = empty
  from = 0
  to = 0
  text = ''
  /** Position in the last chunk of the first byte after the head. */
  next = 0
  readonly #maxBytes: number
  #gathered: Buffer = empty
  #length = 0
  /** How many bytes of the blank line the collected bytes end with. */
  #seen = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Whether a head has begun and is not complete. */
  get isPartial(): boolean {
    return this.#length > 0
  }

  /** Takes the bytes of `chunk` from `at` on; true when the head is complete. */
  take(chunk: Buffer, at: number): boolean | HeadFault {
    if (this.#length > 0) return this.#gather(chunk, at)
    const blank = blankLine(chunk, at)
    if (blank < 0) return this.#gather(chunk, at)
    this.next = blank + BLANK_LINE.length
    if (this.next - at > this.#maxBytes) return tooLarge(this.#maxBytes)
    return this.#whole(chunk, at, blank + 2)
  }

  /** The first bytes of a head that is not whole. */
  peek(bytes: number): string {
    return this.#gathered.toString('latin1', 0, Math.min(bytes, this.#length))
  }

  /** Releases the bytes of a head that was read or refused; an idle connection would hold on to them. */
  clear(): void {
    this.bytes = this.#gathered = empty
    this.text = ''
    this.#length = this.#seen = 0
  }

  #whole(bytes: Buffer, from: number, to: number): true {
    this.bytes = bytes
    this.from = from
    this.to = to
    this.text = bytes.toString('latin1', from, to)
    this.#gathered = empty
    this.#length = 0
    this.#seen = 0
    return true
  }

  #gather(chunk: Buffer, at: number): boolean | HeadFault {
    const end = this.#scan(chunk, at)
    if (typeof end !== 'number') return end
    const length = this.#length + end - at
    if (length > this.#maxBytes) return tooLarge(this.#maxBytes)
    if (length > this.#gathered.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(FIRST_BYTES, length, Math.min(this.#maxBytes, 2 * length)))
      this.#gathered.copy(grown, 0, 0, this.#length)
      this.#gathered = grown
    }
    chunk.copy(this.#gathered, this.#length, at, end)
    this.#length = length
    if (this.#seen < BLANK_LINE.length) return false
    this.next = end
    return this.#whole(this.#gathered, 0, length - 2)
  }

  /**
   * Position of the end of the head in `chunk`, or the end of the chunk. Refuses what no later byte can repair: a
   * client of another protocol should not wait for a timeout.
   */
  #scan(chunk: Buffer, at: number): number | HeadFault {
    let seen = this.#seen
    for (let i = at; i < chunk.length; i++) {
      const byte = chunk[i] ?? 0
      if (byte === LF) {
        if (seen !== 1 && seen !== 3) return malformedHead('a line feed without a carriage return')
        seen++
        if (seen === BLANK_LINE.length) {
          this.#seen = seen
          return i + 1
        }
      } else if (seen === 1 || seen === 3) return malformedHead('a carriage return without a line feed')
      else if (byte === CR) seen++
      else if ((byte < SPACE && byte !== TAB) || byte === DELETE) return malformedHead('a control character')
      else seen = 0
    }
    this.#seen = seen
    return chunk.length
  }
}

/** Position of the last line break, which the blank line follows; -1 when it is not there. */
function blankLine(chunk: Buffer, at: number): number {
  // Most heads are short; then this loop is faster than `indexOf`. It checks where the last byte of a blank line would
  // be, which shows how far it may skip: four bytes for nearly every byte of a head.
  const near = Math.min(chunk.length, at + NEAR_BYTES)
  for (let i = at + 3; i < near; ) {
    const byte = chunk[i]
    if (byte === LF) {
      if (chunk[i - 1] === CR && chunk[i - 2] === LF && chunk[i - 3] === CR) return i - 3
      i += 2
    } else i += byte === CR ? 1 : 4
  }
  return chunk.length - at <= NEAR_BYTES ? -1 : chunk.indexOf(BLANK_LINE, Math.max(at, near - 3))
}

function tooLarge(bytes: number): HeadFault {
  return new HeadFault('too_large', `more than ${bytes} bytes`)
}
