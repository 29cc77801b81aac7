/** A call of the local API: all that its handler needs, and readers of its body and query, within bounds. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { BadJson, readJson } from '../../lib/text/json.ts'
import { isMap } from '../../link/options/option-reader.ts'
import type { Agent } from '../agent.ts'
import type { Inspector } from './inspector.ts'
import { LocalRefusal } from './local-answer.ts'

/** The largest body, in bytes: a replay may contain a request body in base64. */
const BODY_BYTES = 4 * 1024 * 1024

/** The most entries that a list has. */
const MOST = 500

const JSON_BOUNDS = { maxDepth: 32, maxValues: 5000 }

/** What all calls are about. */
export interface LocalParts {
  readonly agent: Agent
  readonly inspector: Inspector
  readonly version: string
}

/** A request, and all that its handler needs to answer it. */
export interface LocalCall extends LocalParts {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly path: string
  readonly query: URLSearchParams
  /** The parameter of the path, decoded: an id or a name; `''` where it has none. */
  readonly param: string
}

/** Reads an object. Pages of other sites cannot send this content type without a CORS preflight, which is not answered. */
export async function readBody(request: IncomingMessage): Promise<Readonly<Record<string, unknown>>> {
  if (!/^application\/json\s*(?:;|$)/i.test(request.headers['content-type'] ?? '')) {
    throw new LocalRefusal(415, 'the body must be application/json')
  }
  const bytes = await readBytes(request)
  if (bytes.length === 0) return {}
  try {
    const value = await readJson(bytes, JSON_BOUNDS)
    if (isMap(value)) return value
  } catch (error) {
    if (!(error instanceof BadJson)) throw error
    throw new LocalRefusal(400, error.message)
  }
  throw new LocalRefusal(400, 'the body must be a JSON object')
}

async function readBytes(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > BODY_BYTES) throw new LocalRefusal(413, `the body must not be larger than ${BODY_BYTES} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** The `limit` of the query, from 1 on; `usual` if it is absent. */
export function limitOf(query: URLSearchParams, usual: number): number {
  const text = query.get('limit')
  if (text === null || text === '') return usual
  const limit = /^\d{1,9}$/.test(text) ? Number(text) : 0
  if (limit < 1) throw new LocalRefusal(400, '`limit` must be a number, 1 or more')
  return Math.min(limit, MOST)
}
