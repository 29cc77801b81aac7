/** Finds the bytes of a body among those of a connection, without copying them. */
import type { HeaderList } from '../../lib/http/header-list.ts'
import type { HeadFault } from './head-fault.ts'

export interface BodyDecoder {
  /** Where in the chunk the bytes begin that were not looked at yet. */
  at: number
  readonly isWhole: boolean
  /** Whether the end of the connection is the end of the body. */
  readonly endsWithConnection: boolean
  /** How much of the body is known to follow, in bytes. */
  readonly left: number | undefined
  readonly trailers: HeaderList | undefined
  /** The next piece in `chunk`; undefined when there is none, since the chunk is used up or the body is whole. */
  next(chunk: Buffer): Buffer | undefined | HeadFault
}

/** A body of so many bytes. */
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

/** A body of all that comes until the end of the connection. */
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
