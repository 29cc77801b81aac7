/** URLs for visitors: where they go after a login, and what providers send them back to. */
import type { RequestContext } from '../phases.ts'

/** In characters. The path travels in a cookie, for which browsers allow 4096 bytes. */
const MAX_LENGTH = 1500

/**
 * Where a visitor goes after a login: `text` when it is a path of the host, with or without a query. Undefined when a
 * browser could read it as another host. Browsers drop tabs and line breaks, read a backslash as a slash, and two slashes as
 * the start of a host name.
 */
export function localPath(text: string): string | undefined {
  return text.length <= MAX_LENGTH && /^\/(?![/\\])[\x21-\x5b\x5d-\x7e]*$/.test(text) ? text : undefined
}

/** A URL with the name and port that the visitor used. */
export function uriOf({ scheme, host, authority }: RequestContext, path: string): string {
  return `${scheme}://${host}${/:\d+$/.exec(authority)?.[0] ?? ''}${path}`
}
