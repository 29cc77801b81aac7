/** Settings that several actions share, and checks that a schema cannot express. */
import type { TObject, TProperties } from 'typebox'
import { toHeaderValue } from '../../../lib/http/http-header.ts'
import { readCidr } from '../../../lib/net/cidr.ts'
import { BadInput } from '../../../lib/shape/bad-input.ts'
import { BadValue } from '../../../lib/shape/check.ts'
import { Type } from '../../../lib/shape/type.ts'
import { readDuration } from './duration.ts'
import type { Moment } from './moment.ts'
import type { Template } from './template.ts'

const MAX_HEADERS = 10
const MAX_HEADER_NAME_BYTES = 256
const MAX_HEADER_VALUE_BYTES = 4096
/** The most characters of a header or URL that a rule writes: no more fit into a head. */
export const MAX_HEAD_LENGTH = 64 * 1024

export const enforce = Type.Boolean({
  default: true,
  description: 'Whether a failed check stops the traffic; when false it is only recorded.',
})

/** An object with these fields and no others. */
export function closedObject<P extends TProperties>(properties: P, description?: string): TObject<P> {
  return Type.Object(properties, { additionalProperties: false, ...(description !== undefined && { description }) })
}

/** Values by name, as expressions read them. */
export function mapOf(fields: Readonly<Record<string, unknown>>): ReadonlyMap<string, unknown> {
  return new Map(Object.entries(fields))
}

/** Returns the headers of a setting, with their values filled in. */
export function compileHeaders(
  headers: Readonly<Record<string, string>>,
  template: (text: string) => Template,
): (moment: Moment) => (readonly [name: string, value: string])[] {
  const given = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), template(value)] as const)
  return (moment) => given.map(([name, value]) => [name, headerValue(value.text(moment))] as const)
}

/** A text as the value of a header; throws when it is longer than a head may be. */
export function headerValue(text: string): string {
  const value = toHeaderValue(text)
  if (value.length <= MAX_HEAD_LENGTH) return value
  throw new Error(`a header would be longer than ${MAX_HEAD_LENGTH} characters`)
}

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
    throw badSetting(at, `must be between \`${least}\` and \`${most}\`${stepped}`)
  }
}

/** Throws `BadValue` for a text with `${…}` where expressions are not evaluated: it would be taken literally. */
export function refuseExpressions(value: unknown, at: string): void {
  if (typeof value === 'string' && value.includes('${')) {
    throw badSetting(at, 'takes no expressions: who is trusted must not depend on the request; write the value itself')
  }
  if (Array.isArray(value)) for (const [i, each] of value.entries()) refuseExpressions(each, `${at}[${i}]`)
  else if (typeof value === 'object' && value !== null) {
    for (const [name, each] of Object.entries(value)) refuseExpressions(each, `${at}.${name}`)
  }
}

function read<T>(reader: (text: string) => T, text: string, at: string): T {
  try {
    return reader(text)
  } catch (error) {
    if (!(error instanceof BadInput)) throw error
    throw badSetting(at, `cannot be read: ${error.message}`)
  }
}

export function badSetting(at: string, what: string): BadValue {
  return new BadValue(at, 'value', `\`${at}\` ${what}`)
}
