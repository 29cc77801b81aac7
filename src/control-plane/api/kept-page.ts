/** A page that is the same for everybody: made and compressed once, and sent from memory. */
import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { chooseCoding } from '../../lib/http/accept-encoding.ts'

/** How much is written to a connection at once, in bytes, so that a slow reader holds no more memory than this. */
const PIECE_BYTES = 64 * 1024

/** Less than this is not worth compressing, in bytes. */
const SMALL_BYTES = 1024

/** The maximum is 11. Higher values than this take seconds for a script of some megabytes, and save little. */
const BROTLI_QUALITY = 5

const codings = ['br', 'gzip'] as const
type Coding = (typeof codings)[number] | 'identity'

export interface KeptPage extends Pick<KeptContent, 'type' | 'cacheControl'> {
  readonly vary: string
  readonly etag: string
  readonly bodies: ReadonlyMap<Coding, Buffer>
}

export interface KeptContent {
  readonly body: Buffer
  readonly type: string
  readonly cacheControl: string
  /** The request headers that select the answer; must include `accept-encoding`. */
  readonly vary?: string
}

/** Compresses on another thread. */
export async function keepPage({ body, type, cacheControl, vary = 'accept-encoding' }: KeptContent): Promise<KeptPage> {
  const bodies = new Map<Coding, Buffer>([['identity', body]])
  if (body.length >= SMALL_BYTES) {
    const params = { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY }
    bodies.set('br', await promisify(brotliCompress)(body, { params }))
    bodies.set('gzip', await promisify(gzip)(body))
  }
  const etag = createHash('sha256').update(body).digest('base64url').slice(0, 27)
  return { type, cacheControl, vary, etag, bodies }
}

export function sendPage(
  request: FastifyRequest,
  reply: FastifyReply,
  { type, cacheControl, vary, etag, bodies }: KeptPage,
): FastifyReply {
  const wanted = chooseCoding(request.headers['accept-encoding'] ?? '', codings)
  const coding: Coding = wanted !== undefined && bodies.has(wanted) ? wanted : 'identity'
  // RFC 9110 §8.8.3: each coding is a separate representation, with its own tag.
  const tag = `"${etag}-${coding}"`
  reply.headers({ etag: tag, 'cache-control': cacheControl, vary })
  if (isKnown(request.headers['if-none-match'], tag)) return reply.code(304).send()
  const body = bodies.get(coding) ?? Buffer.alloc(0)
  if (coding !== 'identity') reply.header('content-encoding', coding)
  return reply
    .type(type)
    .header('content-length', body.length)
    .send(Readable.from(pieces(body), { objectMode: false, highWaterMark: PIECE_BYTES }))
}

/** RFC 9110 §13.1.2: a weak tag and a strong one count as equal. */
function isKnown(header: string | undefined, tag: string): boolean {
  if (header === undefined) return false
  return header.trim() === '*' || header.split(',').some((each) => each.trim().replace(/^W\//, '') === tag)
}

function* pieces(body: Buffer): Generator<Buffer> {
  for (let at = 0; at < body.length; at += PIECE_BYTES) yield body.subarray(at, at + PIECE_BYTES)
}
