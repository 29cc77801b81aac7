/** Where a visitor goes after a login: a path of the host it came to, and nothing that a browser could read as another. */

/** In characters. It travels in a cookie, of which browsers take 4096 bytes. */
const MAX_LENGTH = 1500

/**
 * `text` when it is such a path, with or without a query; undefined otherwise. Browsers drop tabs and line breaks, take
 * a backslash for a slash, and two slashes for the beginning of a host name.
 */
export function localPath(text: string): string | undefined {
  return text.length <= MAX_LENGTH && /^\/(?![/\\])[\x21-\x5b\x5d-\x7e]*$/.test(text) ? text : undefined
}
