/** Which fields may come after a body: those that the recipient does not need before it. */
import type { HeaderList } from '../../lib/http/header-list.ts'

/**
 * RFC 9110 §6.5.1: fields that frame, route, authenticate, modify a request, control a response or say how to read the
 * content. And those that identify a visitor to services and modules: some servers merge trailers into the headers.
 */
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
  'forwarded',
  'host',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-range',
  'if-unmodified-since',
  'keep-alive',
  'location',
  'max-forwards',
  'origin',
  'pragma',
  'proxy-authenticate',
  'proxy-authentication-info',
  'proxy-authorization',
  'proxy-connection',
  'range',
  'referer',
  'retry-after',
  'set-cookie',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'user-agent',
  'vary',
  'via',
  'warning',
  'www-authenticate',
  'x-http-method-override',
  'x-real-ip',
])

/** `key` is lower case. */
export function isTrailer(key: string): boolean {
  return !forbidden.has(key) && !key.startsWith('x-forwarded-')
}

/** The fields that may be trailers; undefined when there are none. */
export function asTrailers(fields: HeaderList): HeaderList | undefined {
  fields.removeWhere(({ key }) => !isTrailer(key))
  return fields.size > 0 ? fields : undefined
}
