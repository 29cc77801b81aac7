/** The body of a request: JSON only, strict, checked against the route's schema (D7, D8). */
import { BadValue, type BadValueKind, check } from '../../lib/shape/check.ts'
import { BadJson, MAX_JSON_VALUES, readJson } from '../../lib/text/json.ts'
import { ownTurn } from '../../lib/threads/others-turn.ts'
import { type ErrorCode, Refusal } from '../../model/errors.ts'
import type { Fields } from '../resources/resource.ts'
import type { Dialect } from './dialect/api-dialect.ts'
import type { ApiRoute } from './routes.ts'

export const MAX_BODY_BYTES = 1024 * 1024
const MAX_DEPTH = 32

/** The body as it arrived. */
interface RawBody {
  readonly bytes: Buffer
  readonly contentType: string | undefined
  /** Parameters of the path, which a body may repeat. */
  readonly params: Readonly<Record<string, string>>
}

/** Bodies that take more than a millisecond or so to read. */
const LARGE_BODY_BYTES = 16 * 1024

/** Reads the body of a request to `route`; rejects with `Refusal`. */
export async function readBody(
  route: ApiRoute,
  { bytes, contentType, params }: RawBody,
  dialect: Dialect,
): Promise<Fields> {
  if (!route.body) return {}
  // A large body is parsed in turns of the event loop of its own, apart from receiving and from using it.
  const isLarge = bytes.length > LARGE_BODY_BYTES
  if (isLarge) await ownTurn()
  const value = bytes.length === 0 ? {} : await parseBody(bytes, contentType)
  if (isLarge) await ownTurn()
  try {
    const body = isObject(value) ? dialect.readBody(route, withoutPathIds(route, value, params)) : value
    return check(route.body, body)
  } catch (error) {
    throw refusalOf(error)
  }
}

/** A value that a schema or a resource refused, as the API answers it; anything else is passed through. */
export function refusalOf(error: unknown): unknown {
  return error instanceof BadValue ? new Refusal(codes[error.kind], error.message, { field: error.field }) : error
}

const codes: Record<BadValueKind, ErrorCode> = {
  unknown_field: 'UNKNOWN_FIELD',
  required: 'FIELD_REQUIRED',
  type: 'INVALID_VALUE',
  too_long: 'FIELD_TOO_LONG',
  value: 'INVALID_VALUE',
}

/** The JSON of a body that says it is JSON; rejects with `Refusal`. */
export async function parseBody(bytes: Buffer, contentType: string | undefined): Promise<unknown> {
  if (!/^application\/json *(;|$)/i.test(contentType ?? '')) throw new Refusal('BODY_TYPE')
  const charset = /;\s*charset="?([^";\s]+)/i.exec(contentType ?? '')?.[1]
  if (charset && !/^utf-?8$/i.test(charset)) throw new Refusal('BODY_TYPE', 'send the body as UTF-8')
  try {
    return await readJson(bytes, { maxDepth: MAX_DEPTH, maxValues: MAX_JSON_VALUES })
  } catch (cause) {
    if (cause instanceof BadJson) throw new Refusal('BODY_MALFORMED', cause.message, { cause })
    throw cause
  }
}

/** D8: clients may repeat the ids of the path in the body, as long as they are the same. */
function withoutPathIds(
  route: ApiRoute,
  value: Readonly<Record<string, unknown>>,
  params: RawBody['params'],
): Readonly<Record<string, unknown>> {
  const rest: Record<string, unknown> = { ...value }
  for (const [name, id] of Object.entries(params)) {
    if (!Object.hasOwn(rest, name) || Object.hasOwn(route.body?.properties ?? {}, name)) continue
    if (rest[name] !== id) {
      throw new Refusal('INVALID_VALUE', `\`${name}\` must be the same as in the path, or be left out`)
    }
    delete rest[name]
  }
  return rest
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
