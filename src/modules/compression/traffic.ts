/**
 * Compresses responses that the upstream sent uncompressed, chunk by chunk and without delay.
 *
 * @example
 * const phases = compileCompression()
 * const ctx = request({ headers: { 'accept-encoding': 'br;q=0.5, gzip' } })
 * const answer = response({ headers: { 'content-type': 'text/html' } })
 * phases.response(answer, ctx)
 * answer.headers.get('content-encoding') // 'gzip'
 * answer.headers.get('vary') // 'Accept-Encoding'
 */
import type { Transform } from 'node:stream'
import { constants, createBrotliCompress, createDeflate, createGzip } from 'node:zlib'
import { chooseCoding } from '../../lib/http/accept-encoding.ts'
import type { HeaderList } from '../../lib/http/header-list.ts'
import type { Incoming, Phases, RequestContext } from '../phases.ts'
import type { CompressionSettings } from './form.ts'

/** In order of preference when the visitor accepts several equally. Each chunk is flushed at once, for SSE. */
const codings: Readonly<Record<'gzip' | 'br' | 'deflate', () => Transform>> = {
  gzip: () => createGzip({ flush: constants.Z_SYNC_FLUSH }),
  br: () =>
    createBrotliCompress({
      flush: constants.BROTLI_OPERATION_FLUSH,
      params: {
        // The defaults suit files: they are slow, and take megabytes for each response.
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
      // Also when this response stays uncompressed: for another visitor it may be compressed.
      addVary(headers)
      const coding = chooseCoding(ctx.headers.all('accept-encoding').join(','), allowed)
      if (coding === undefined) return
      headers.set('content-encoding', coding)
      headers.removeWhere(({ key }) => ofOtherBytes.has(key))
      const tag = headers.get('etag')
      // RFC 9110 §8.8.1: a weak tag, since the bytes have changed but not the meaning.
      if (tag?.startsWith('"')) headers.set('etag', `W/${tag}`)
      ctx.found.set('compression.algorithm', coding)
      incoming.encodeBody(codings[coding]())
    },
  }
}

/** Headers that describe the uncompressed bytes, and are wrong after compression. */
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

/** Media types that are already compressed, and gRPC, which has its own compression. */
const alreadySmall =
  /^\s*(?:image\/(?!svg|bmp|x-icon)|video\/|audio\/(?!wav)|font\/woff|application\/(?:grpc|zip|gzip|x-gzip|zstd|x-7z|x-bzip|x-xz|x-rar|vnd\.rar|pdf))/i

function addVary(headers: HeaderList): void {
  const names = headers.all('vary').flatMap((value) => value.split(',').map((name) => name.trim().toLowerCase()))
  if (!names.includes('*') && !names.includes('accept-encoding')) headers.add('vary', 'Accept-Encoding')
}
