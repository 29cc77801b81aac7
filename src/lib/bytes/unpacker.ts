/** Decompresses bodies to show them as text. */
import type { Transform } from 'node:stream'
import * as zlib from 'node:zlib'
import { utf8Text } from '../text/utf8-text.ts'

/** The most that is unpacked of one body, in bytes: a few bytes may expand to gigabytes. */
const MAX_UNPACKED = 1024 * 1024

/** How much is unpacked at a time, in bytes. */
const CHUNK_BYTES = 64 * 1024

/** How many bodies are unpacked at once; each may need a window of some megabytes. */
const MAX_AT_ONCE = 4

/** The largest window of zstd: 8 MiB, as in browsers (RFC 9659). Brotli has at most 16 MiB. */
const ZSTD_WINDOW_LOG = 23

/** The unpacked text of a body. */
export interface UnpackedText {
  /** The name in `Content-Encoding`. */
  readonly coding: string
  readonly content: string
  /** Size of the content, in bytes. */
  readonly size: number
  /** Whether there was more, or the body was incomplete. */
  readonly isCut: boolean
}

const options = { chunkSize: CHUNK_BYTES }

/** By their names in `Content-Encoding`. */
const codings: ReadonlyMap<string, () => Transform> = new Map([
  ['gzip', () => zlib.createGunzip(options)],
  ['x-gzip', () => zlib.createGunzip(options)],
  ['deflate', () => zlib.createInflate(options)],
  ['br', () => zlib.createBrotliDecompress(options)],
  ...zstd(),
])

/** Agents may run on a version of Node without zstd. */
function zstd(): [string, () => Transform][] {
  if (!('createZstdDecompress' in zlib)) return []
  const params = { [zlib.constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG }
  return [['zstd', () => zlib.createZstdDecompress({ ...options, params })]]
}

export class Unpacker {
  #running = 0
  readonly #waiting: (() => void)[] = []

  /** Undefined for bodies that are not compressed, use an unknown coding, or are not text. Never rejects. */
  async text(packed: Buffer, contentEncoding: string): Promise<UnpackedText | undefined> {
    const coding = contentEncoding.trim().toLowerCase()
    const begin = codings.get(coding)
    if (!begin || packed.length === 0) return undefined
    await this.#turn()
    try {
      const { bytes, isCut } = await unpack(packed, begin())
      const content = utf8Text(bytes, { isCut })
      return content ? { coding, content, size: bytes.length, isCut } : undefined
    } finally {
      const next = this.#waiting.shift()
      if (next) next()
      else this.#running--
    }
  }

  async #turn(): Promise<void> {
    if (this.#running < MAX_AT_ONCE) this.#running++
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
  }
}

/** Unpacks up to the end, the limit or a fault, since a capture may have kept only part of the body. */
function unpack(packed: Buffer, unpacking: Transform): Promise<{ readonly bytes: Buffer; readonly isCut: boolean }> {
  const { promise, resolve } = Promise.withResolvers<{ readonly bytes: Buffer; readonly isCut: boolean }>()
  const parts: Buffer[] = []
  let size = 0
  const finish = (isCut: boolean): void => {
    unpacking.destroy()
    resolve({ bytes: Buffer.concat(parts).subarray(0, MAX_UNPACKED), isCut })
  }
  unpacking.on('data', (part: Buffer) => {
    parts.push(part)
    size += part.length
    if (size > MAX_UNPACKED) finish(true)
  })
  unpacking.on('end', () => finish(false))
  unpacking.on('error', () => finish(true))
  unpacking.end(packed)
  return promise
}
