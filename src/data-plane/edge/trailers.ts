/** Which fields concern one connection, and which may come after a body: those that the recipient does not need before it. */
import type { HeaderList } from '../../lib/http/header-list.ts'

/** Fields about a connection and the framing of its messages, which each connection writes itself. RFC 9113 §8.2.2 forbids them. */
export const connectionFields: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'http2-settings',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** RFC 9110 §7.6.1; and `Expect`, which the edge answers, since it reads the body. */
export const hopByHop: ReadonlySet<string> = new Set([
  ...connectionFields,
  'expect',
  'proxy-authenticate',
  'proxy-authentication-info',
  'proxy-authorization',
])

/**
 * RFC 9110 §6.5.1: fields that frame, route, authenticate, modify a request, control a response or say how to read the
 * content. And those that identify a visitor to services and modules: some servers merge trailers into the headers.
 */
const forbidden: ReadonlySet<string> = new Set([
  ...hopByHop,
  'age',
  'authorization',
  'cache-control',
  'content-encoding',
  'content-range',
  'content-type',
  'cookie',
  'date',
  'expires',
  'forwarded',
  'host',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-range',
  'if-unmodified-since',
  'location',
  'max-forwards',
  'origin',
  'pragma',
  'range',
  'referer',
  'retry-after',
  'set-cookie',
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
