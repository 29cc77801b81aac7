/** Finds the tokens of a request: in a header, or in a field of its body. */
import type { HeaderList } from '../../../lib/http/header-list.ts'
import { BadJson, readJson } from '../../../lib/text/json.ts'
import type { TokenSource } from './jwt-settings.ts'
import type { PolicyRequest } from './policy-traffic.ts'

/** The longest body that is searched for a token, since all of it is held in memory. */
const MAX_BODY_BYTES = 64 * 1024

/** The longest token that is read, in characters. */
const MAX_TOKEN_LENGTH = 16 * 1024

/** Why a body cannot be read. */
export type Unread = 'too_large' | 'no_memory'

/** Reads a body once for all tokens of a request. */
type BodyFields = () => Promise<ReadonlyMap<string, readonly unknown[]> | Unread>

/** The token at `place`. Undefined when there is none, or several: the upstream might use another one than we checked. */
export async function findToken(
  { method, name, prefix }: TokenSource,
  headers: HeaderList,
  body: BodyFields,
): Promise<{ readonly token: string | undefined } | { readonly unread: Unread }> {
  if (method === 'header') return { token: tokenOf(headers.all(name.toLowerCase()), prefix) }
  const fields = await body()
  if (typeof fields === 'string') return { unread: fields }
  return { token: tokenOf(fields.get(name.toLowerCase()) ?? [], prefix) }
}

function tokenOf(values: readonly unknown[], prefix: string): string | undefined {
  const [value, ...more] = values
  if (typeof value !== 'string' || more.length > 0) return undefined
  // RFC 9110 §11.1: the name of a scheme, such as `Bearer`, is case-insensitive.
  if (value.slice(0, prefix.length).toLowerCase() !== prefix.toLowerCase()) return undefined
  const token = value.slice(prefix.length).trim()
  return token.length <= MAX_TOKEN_LENGTH ? token : undefined
}

export function bodyFields(request: PolicyRequest, headers: HeaderList): BodyFields {
  let read: ReturnType<BodyFields> | undefined
  return () => {
    read ??= readFields(request, headers)
    return read
  }
}

/** The fields of a form or JSON body: lower-case names, each with all values. Empty for any other body. */
async function readFields(request: PolicyRequest, headers: HeaderList): ReturnType<BodyFields> {
  const types = headers.all('content-type')
  const kind = types.length === 1 ? (types[0]?.split(';', 1)[0]?.trim().toLowerCase() ?? '') : ''
  const isForm = kind === 'application/x-www-form-urlencoded'
  if ((!isForm && kind !== 'application/json') || headers.has('content-encoding')) return new Map()
  const body = await request.readBody(MAX_BODY_BYTES)
  if (typeof body === 'string') return body
  const pairs = isForm ? [...new URLSearchParams(body.toString('utf8'))] : await jsonFields(body)
  const fields = new Map<string, unknown[]>()
  for (const [name, value] of pairs) {
    const key = name.toLowerCase()
    const values = fields.get(key)
    if (values) values.push(value)
    else fields.set(key, [value])
  }
  return fields
}

async function jsonFields(body: Buffer): Promise<readonly (readonly [string, unknown])[]> {
  try {
    const value = await readJson(body, { maxDepth: 32, maxValues: 5000 })
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.entries(value) : []
  } catch (error) {
    if (error instanceof BadJson) return []
    throw error
  }
}
