/** Compresses what the upstream sent uncompressed, on its way and without holding it back. */
import type { Transform } from 'node:stream'
import { constants, createBrotliCompress, createDeflate, createGzip } from 'node:zlib'
import type { HeaderList } from '../../lib/http/header-list.ts'
import type { Incoming, Phases, RequestContext } from '../phases.ts'
import { chooseCoding } from './accept-encoding.ts'

export interface CompressionSettings {
  /** Those that may be used; all that there are when left out. What is not known here is left out. */
  readonly algorithms?: readonly string[]
}

/** In the order in which they are taken when the visitor likes several equally. Each chunk goes out at once, for SSE. */
const codings: Readonly<Record<'gzip' | 'br' | 'deflate', () => Transform>> = {
  gzip: () => createGzip({ flush: constants.Z_SYNC_FLUSH }),
  br: () =>
    createBrotliCompress({
      flush: constants.BROTLI_OPERATION_FLUSH,
      params: {
        // Between gzip and its own defaults, which are made for files: slow, and megabytes for each response.
        [constants.BROTLI_PARAM_QUALITY]: 4,
        [constants.BROTLI_PARAM_LGWIN]: 18,
      },
    }),
  deflate: () => createDeflate({ flush: constants.Z_SYNC_FLUSH }),
}
const offered = ['gzip', 'br', 'deflate'] as const

export function compileCompression({ algorithms }: CompressionSettings = {}): Phases {
  const allowed = offered.filter((coding) => algorithms?.includes(coding) !== false)
  return {
    response(incoming, ctx) {
      if (!isWorthIt(incoming, ctx)) return
      const { headers } = incoming
      // Also where it stays as it is: for another visitor it would not.
      addVary(headers)
      const coding = chooseCoding(ctx.headers.all('accept-encoding').join(','), allowed)
      if (coding === undefined) return
      headers.set('content-encoding', coding)
      headers.removeWhere(({ key }) => ofOtherBytes.has(key))
      const tag = headers.get('etag')
      // RFC 9110 §8.8.1: the bytes are others now, the meaning is the same.
      if (tag?.startsWith('"')) headers.set('etag', `W/${tag}`)
      ctx.found.set('compression.algorithm', coding)
      incoming.encodeBody(codings[coding]())
    },
  }
}

/** What is said of the bytes before they were compressed. */
const ofOtherBytes: ReadonlySet<string> = new Set([
  'accept-ranges',
  'content-digest',
  'content-length',
  'content-md5',
  'digest',
  'repr-digest',
])

function isWorthIt({ status, headers, isFromUpstream, hasBody, bodyLength }: Incoming, ctx: RequestContext): boolean {
  if (!isFromUpstream || !hasBody || ctx.method === 'HEAD') return false
  if (status < 200 || status === 204 || status === 206 || status === 304) return false
  if (bodyLength === 0) return false
  if (headers.has('content-encoding') || headers.has('content-range')) return false
  if (headers.all('cache-control').some((value) => /\bno-transform\b/i.test(value))) return false
  return !alreadySmall.test(headers.get('content-type') ?? '')
}

/** Media that are compressed by nature, and gRPC, which has its own way to compress. */
const alreadySmall =
  /^\s*(?:image\/(?!svg|bmp|x-icon)|video\/|audio\/(?!wav)|font\/woff|application\/(?:grpc|zip|gzip|x-gzip|zstd|x-7z|x-bzip|x-xz|x-rar|vnd\.rar|pdf))/i

function addVary(headers: HeaderList): void {
  const names = headers.all('vary').flatMap((value) => value.split(',').map((name) => name.trim().toLowerCase()))
  if (!names.includes('*') && !names.includes('accept-encoding')) headers.add('vary', 'Accept-Encoding')
}
