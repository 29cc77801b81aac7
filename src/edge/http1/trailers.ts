/** Which fields may come after a body: those that the recipient does not need before it. */
import type { HeaderList } from '../../lib/header-list.ts'

/** RFC 9110 §6.5.1: fields that frame, route, authenticate, modify a request, or say how the content is to be read. */
const forbidden: ReadonlySet<string> = new Set([
  'age',
  'authorization',
  'cache-control',
  'connection',
  'content-encoding',
  'content-length',
  'content-range',
  'content-type',
  'cookie',
  'date',
  'expect',
  'expires',
  'host',
  'keep-alive',
  'location',
  'max-forwards',
  'pragma',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'range',
  'retry-after',
  'set-cookie',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'vary',
  'www-authenticate',
])

export function isTrailer(key: string): boolean {
  return !forbidden.has(key)
}

/** Those that may be trailers; undefined when there are none. */
export function asTrailers(fields: HeaderList): HeaderList | undefined {
  fields.removeWhere(({ key }) => !isTrailer(key))
  return fields.size > 0 ? fields : undefined
}
