/**
 * Decodes the chunked coding, RFC 9112 §7.1, strictly: a byte that the next server reads differently is a smuggled
 * request.
 */
import type { HeaderList } from '../../../lib/http/header-list.ts'
import { asTrailers } from '../trailers.ts'
import type { BodyDecoder } from './body-decoder.ts'
import { CHUNK_EXTENSION_BYTES, CHUNK_SIZE_DIGITS, SMALL_CHUNK_BYTES, TRAILER_BYTES, TRAILERS } from './bounds.ts'
import { CR, inValue, LF } from './characters.ts'
import { HeadFault, malformedHead } from './head-fault.ts'
import { HeadReader } from './head-reader.ts'
import { parseFields } from './header-fields.ts'

type State = 'size' | 'extension' | 'size_lf' | 'data' | 'data_cr' | 'data_lf' | 'trailers' | 'whole'

const SEMICOLON = 0x3b

/** What follows the data of the last chunk when there are no trailers. */
const LAST_BYTES = '\r\n0\r\n\r\n'.length

export class ChunkedDecoder implements BodyDecoder {
  at = 0
  trailers: HeaderList | undefined
  readonly endsWithConnection = false
  readonly left = undefined
  readonly #dropsUnderscores: boolean
  #state: State = 'size'
  #size = 0
  #digits = 0
  #extensionBytes = 0
  #trailerReader: HeadReader | undefined

  constructor({ dropsUnderscores }: { dropsUnderscores: boolean }) {
    this.#dropsUnderscores = dropsUnderscores
  }

  get isWhole(): boolean {
    return this.#state === 'whole'
  }

  next(chunk: Buffer): Buffer | undefined | HeadFault {
    let gathered: Buffer | undefined
    let length = 0
    while (this.at < chunk.length && this.#state !== 'whole') {
      if (this.#state !== 'data') {
        const fault = this.#state === 'trailers' ? this.#readTrailers(chunk) : this.#step(chunk[this.at] ?? 0)
        if (fault) return fault
        continue
      }
      const bytes = Math.min(this.#size, chunk.length - this.at)
      const isSmall = bytes < SMALL_CHUNK_BYTES && chunk.length - this.at - bytes > LAST_BYTES
      if (!isSmall) return gathered?.subarray(0, length) ?? chunk.subarray(this.at, this.#skip(bytes))
      gathered ??= Buffer.allocUnsafe(chunk.length - this.at)
      length += chunk.copy(gathered, length, this.at, this.#skip(bytes))
    }
    return gathered?.subarray(0, length)
  }

  /** Continues after this many bytes of data; returns the new position. */
  #skip(bytes: number): number {
    this.at += bytes
    this.#size -= bytes
    if (this.#size === 0) this.#state = 'data_cr'
    return this.at
  }

  /** Handles one byte between two pieces of data. */
  #step(byte: number): HeadFault | undefined {
    switch (this.#state) {
      case 'size':
        return this.#readSize(byte)
      case 'extension':
        if (byte === CR) return this.#endLine()
        if (!inValue(byte)) return malformedHead('a chunk extension with a control character')
        if (++this.#extensionBytes > CHUNK_EXTENSION_BYTES) return malformedHead('chunk extensions without end')
        break
      case 'size_lf':
        if (byte !== LF) return malformedHead('a carriage return alone after the size of a chunk')
        this.#state = 'data'
        break
      case 'data_cr':
        if (byte !== CR) return malformedHead('a chunk longer than its size')
        this.#state = 'data_lf'
        break
      case 'data_lf':
        if (byte !== LF) return malformedHead('a carriage return alone after a chunk')
        this.#state = 'size'
        this.#digits = 0
        break
      case 'data':
      case 'trailers':
      case 'whole':
        return undefined
    }
    this.at++
    return undefined
  }

  #readSize(byte: number): HeadFault | undefined {
    const digit = hexDigit(byte)
    if (digit >= 0) {
      if (++this.#digits > CHUNK_SIZE_DIGITS) return malformedHead('a chunk whose size is too large')
      this.#size = this.#size * 16 + digit
    } else if (this.#digits === 0) return malformedHead('a chunk without a size')
    else if (byte === CR) return this.#endLine()
    else if (byte === SEMICOLON) this.#state = 'extension'
    else return malformedHead('a chunk whose size is not a hexadecimal number')
    this.at++
    return undefined
  }

  /**
   * At the CR after size and extensions. After the last chunk the CR is left to the trailers: without any, a blank line
   * follows.
   */
  #endLine(): undefined {
    if (this.#size > 0) {
      this.at++
      this.#state = 'size_lf'
    } else this.#state = 'trailers'
  }

  #readTrailers(chunk: Buffer): HeadFault | undefined {
    this.#trailerReader ??= new HeadReader(TRAILER_BYTES)
    const reader = this.#trailerReader
    const isWhole = reader.take(chunk, this.at)
    if (isWhole instanceof HeadFault) return isWhole
    if (!isWhole) {
      this.at = chunk.length
      return undefined
    }
    this.at = reader.next
    this.#state = 'whole'
    // No trailers, as nearly always: only the blank line.
    if (reader.to - reader.from === 2) return undefined
    if (!reader.text.startsWith('\r\n')) return malformedHead('a carriage return alone after the last chunk')
    const rules = { maxFields: TRAILERS, dropsUnderscores: this.#dropsUnderscores }
    const fields = parseFields(reader, reader.from + 2, rules)
    if (fields instanceof HeadFault) return fields
    this.trailers = asTrailers(fields.headers)
    return undefined
  }
}

function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const lower = byte | 0x20
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x61 + 10 : -1
}
