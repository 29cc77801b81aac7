/** Finds the bytes of a body among those of a connection, without copying them. */
import type { HeaderList } from '../../../lib/http/header-list.ts'
import type { HeadFault } from './head-fault.ts'

export interface BodyDecoder {
  /** Position in the chunk of the first byte not yet decoded. */
  at: number
  readonly isWhole: boolean
  /** Whether the body ends when the connection does. */
  readonly endsWithConnection: boolean
  /** Bytes of the body that are known to follow. */
  readonly left: number | undefined
  readonly trailers: HeaderList | undefined
  /** The next piece in `chunk`; undefined when the chunk is used up or the body complete. */
  next(chunk: Buffer): Buffer | undefined | HeadFault
}

/** A body of a known length. */
export class LengthDecoder implements BodyDecoder {
  at = 0
  left: number
  readonly endsWithConnection = false
  readonly trailers = undefined

  constructor(length: number) {
    this.left = length
  }

  get isWhole(): boolean {
    return this.left === 0
  }

  next(chunk: Buffer): Buffer | undefined {
    const length = Math.min(this.left, chunk.length - this.at)
    if (length === 0) return undefined
    const from = this.at
    this.at += length
    this.left -= length
    return pieceOf(chunk, from, this.at)
  }
}

/** A body that ends with the connection. */
export class EndlessDecoder implements BodyDecoder {
  at = 0
  readonly isWhole = false
  readonly endsWithConnection = true
  readonly left = undefined
  readonly trailers = undefined

  next(chunk: Buffer): Buffer | undefined {
    if (this.at === chunk.length) return undefined
    const from = this.at
    this.at = chunk.length
    return pieceOf(chunk, from, chunk.length)
  }
}

function pieceOf(chunk: Buffer, from: number, to: number): Buffer {
  return from === 0 && to === chunk.length ? chunk : chunk.subarray(from, to)
}
