/** Gathers the bytes of a head until it is whole; one that comes in one chunk, as most do, is not copied. */
import { CR, DELETE, LF, SPACE, TAB } from './characters.ts'
import { HeadFault, malformed } from './head-fault.ts'

const empty: Buffer = Buffer.alloc(0)
const BLANK_LINE = Buffer.from('\r\n\r\n', 'latin1')

/** The first piece of a head that comes in several, in bytes; it doubles from there. */
const FIRST_BYTES = 1024

/** How far the end of a head is looked for byte by byte, in bytes. */
const NEAR_BYTES = 512

/** Whole lines: the bytes from `from` to before `to`, with the end of the last line and without the blank line. */
export interface Head {
  readonly bytes: Buffer
  readonly from: number
  readonly to: number
  /** The same as characters: slices of one string cost less than a call for each. */
  readonly text: string
}

export class HeadReader implements Head {
  bytes: Buffer = empty
  from = 0
  to = 0
  text = ''
  /** Where in the last chunk that which follows the head begins. */
  next = 0
  readonly #maxBytes: number
  #gathered: Buffer = empty
  #length = 0
  /** How much of the blank line the gathered bytes end with. */
  #seen = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Whether a head has begun and is not whole. */
  get isPartial(): boolean {
    return this.#length > 0
  }

  /** Takes the bytes of `chunk` from `at` on; true when the head is whole. */
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

  /** Lets go of a head that was read or refused: a kept connection would hold its bytes for as long. */
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
   * Where the head ends in `chunk`, or the end of the chunk. Refuses here what no later byte can mend: a visitor that
   * speaks another protocol should not have to wait for a timeout.
   */
  #scan(chunk: Buffer, at: number): number | HeadFault {
    let seen = this.#seen
    for (let i = at; i < chunk.length; i++) {
      const byte = chunk[i] ?? 0
      if (byte === LF) {
        if (seen !== 1 && seen !== 3) return malformed('a line feed without a carriage return')
        seen++
        if (seen === BLANK_LINE.length) {
          this.#seen = seen
          return i + 1
        }
      } else if (seen === 1 || seen === 3) return malformed('a carriage return without a line feed')
      else if (byte === CR) seen++
      else if ((byte < SPACE && byte !== TAB) || byte === DELETE) return malformed('a control character')
      else seen = 0
    }
    this.#seen = seen
    return chunk.length
  }
}

/** Where the end of the last line begins, the blank line behind it; -1 when it is not there. */
function blankLine(chunk: Buffer, at: number): number {
  // Most heads are short, and then this takes less time than the call.
  const near = Math.min(chunk.length, at + NEAR_BYTES) - 3
  for (let i = at; i < near; i++) {
    if (chunk[i] === CR && chunk[i + 2] === CR && chunk[i + 1] === LF && chunk[i + 3] === LF) return i
  }
  return chunk.length - at <= NEAR_BYTES ? -1 : chunk.indexOf(BLANK_LINE, near)
}

function tooLarge(bytes: number): HeadFault {
  return new HeadFault('too_large', `more than ${bytes} bytes`)
}
