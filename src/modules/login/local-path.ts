/** Where a visitor goes after a login: a path of the same host, and nothing that a browser could read as another host. */

/** In characters. The path travels in a cookie, for which browsers allow 4096 bytes. */
const MAX_LENGTH = 1500

/**
 * `text` when it is a path of the host, with or without a query; undefined otherwise. Browsers drop tabs and line breaks,
 * read a backslash as a slash, and two slashes as the start of a host name.
 */
export function localPath(text: string): string | undefined {
  return text.length <= MAX_LENGTH && /^\/(?![/\\])[\x21-\x5b\x5d-\x7e]*$/.test(text) ? text : undefined
}
