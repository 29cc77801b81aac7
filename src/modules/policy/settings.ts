/** Settings that several actions have in common, and the checks that a schema cannot express. */
import { Type } from 'typebox'
import { BadValue } from '../../lib/check.ts'
import { readCidr } from '../../lib/cidr.ts'
import { readDuration } from './duration.ts'

const MAX_HEADERS = 10
const MAX_HEADER_NAME_BYTES = 256
const MAX_HEADER_VALUE_BYTES = 4096

export const enforce = Type.Boolean({
  default: true,
  description: 'Whether a failed check stops the traffic; when false it is only recorded.',
})

export const text = (maxBytes: number, description: string) => Type.String({ minLength: 1, maxBytes, description })

export const duration = (fallback: string, description: string) =>
  Type.String({ default: fallback, maxBytes: 32, description })

export const headerMap = (description: string, minProperties = 0) =>
  Type.Record(Type.String(), Type.String({ maxBytes: MAX_HEADER_VALUE_BYTES }), {
    minProperties,
    maxProperties: MAX_HEADERS,
    maxKeyBytes: MAX_HEADER_NAME_BYTES,
    description,
  })

export const headerList = (description: string) =>
  Type.Array(Type.String({ maxBytes: MAX_HEADER_NAME_BYTES }), { minItems: 1, maxItems: MAX_HEADERS, description })

/** Throws `BadValue` for headers that must not be set, and for values that are none. */
export function checkHeaders(headers: Readonly<Record<string, string>>, at: string): void {
  const seen = new Set<string>()
  for (const [name, value] of Object.entries(headers)) {
    const field = `${at}[${JSON.stringify(name)}]`
    checkHeaderName(name, field)
    if (seen.has(name.toLowerCase())) throw bad(field, 'names a header that is there already in another case')
    seen.add(name.toLowerCase())
    // D42b: others trust these names because only the edge sets them.
    if (/^postern-/i.test(name)) {
      throw bad(field, 'begins with `postern-`, which is kept for headers that the edge sets; choose another name')
    }
    if (/(?!\t)\p{Cc}/u.test(value)) {
      throw bad(field, 'has a value with a line break or another control character; remove it')
    }
  }
}

/** Throws `BadValue` for what is no header name, or names a header that the edge alone writes (D37). */
export function checkHeaderName(name: string, at: string): void {
  // RFC 9110 §5.6.2: token
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name)) {
    throw bad(at, "is not a header name: use letters, digits and the characters !#$%&'*+-.^_`|~ only")
  }
  const lower = name.toLowerCase()
  if (lower === 'user-agent') throw bad(at, 'names `user-agent`, which cannot be changed')
  if (connectionNames.has(lower) || lower.startsWith('proxy-')) {
    throw bad(at, 'names a header that belongs to the connection, which the edge writes itself')
  }
}

/** RFC 9110 §7.6.1, and what frames the message. */
const connectionNames: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** Throws `BadValue` unless each entry is a network in CIDR form. */
export function checkCidrs(cidrs: readonly string[], at: string): void {
  for (const [i, cidr] of cidrs.entries()) read(readCidr, cidr, `${at}[${i}]`)
}

/** Throws `BadValue` unless `text` is a duration in range; `step` is what it must be a multiple of. */
export function checkDuration(
  text: string,
  at: string,
  { least, most, step = 1 }: { least: string; most: string; step?: number },
): void {
  const seconds = read(readDuration, text, at)
  if (seconds < readDuration(least) || seconds > readDuration(most) || seconds % step !== 0) {
    const stepped = step === 1 ? '' : ` and a multiple of \`${step}s\``
    throw bad(at, `must be between \`${least}\` and \`${most}\`${stepped}`)
  }
}

function read<T>(reader: (text: string) => T, text: string, at: string): T {
  try {
    return reader(text)
  } catch (error) {
    throw bad(at, `cannot be read: ${error instanceof Error ? error.message : String(error)}`)
  }
}

export function bad(at: string, what: string): BadValue {
  return new BadValue(at, 'value', `\`${at}\` ${what}`)
}
