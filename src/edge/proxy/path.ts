/** The path that decisions are made by: decoded once, without dot segments, or none when two servers could read it differently. */

/** What RFC 3986 leaves out of a path and some server would still read as something: blanks, `#`, `\`, what is not ASCII. */
const notInPaths = /[^\x21\x22\x24-\x5b\x5d-\x7e]/

/** Path and query, as they were sent. */
export function splitTarget(target: string): { path: string; query: string } {
  const at = target.indexOf('?')
  return at < 0 ? { path: target, query: '' } : { path: target.slice(0, at), query: target.slice(at + 1) }
}

/** The canonical form of `path`; undefined when it has none. `*`, which asks about the whole server, is its own. */
export function canonicalPath(path: string): string | undefined {
  if (path === '*') return path
  if (!path.startsWith('/') || notInPaths.test(path)) return undefined
  const decoded = path.includes('%') ? decode(path) : path
  if (decoded === undefined || !decoded.includes('/.')) return decoded
  return withoutDotSegments(decoded)
}

function decode(path: string): string | undefined {
  try {
    const decoded = decodeURIComponent(path)
    return decoded.includes('\0') ? undefined : decoded
  } catch {
    // Not UTF-8, or a `%` without two hexadecimal digits.
    return undefined
  }
}

/** RFC 3986 §5.2.4. After decoding, since `%2e%2e` climbs as well as `..` in every server that decodes. */
function withoutDotSegments(path: string): string {
  const kept: string[] = []
  const segments = path.slice(1).split('/')
  const last = segments.length - 1
  for (const [i, segment] of segments.entries()) {
    const isDots = segment === '.' || segment === '..'
    if (segment === '..') kept.pop()
    else if (!isDots) kept.push(segment)
    // A directory stays one: `/a/.` is `/a/`.
    if (isDots && i === last) kept.push('')
  }
  return `/${kept.join('/')}`
}
