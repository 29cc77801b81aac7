/** Checks a decision for every way in which common servers read a path (D63). */

/** Path and query, as they were sent. */
export function splitTarget(target: string): { path: string; query: string } {
  const at = target.indexOf('?')
  return at < 0 ? { path: target, query: '' } : { path: target.slice(0, at), query: target.slice(at + 1) }
}

/** `%`, `;`, `\`, `//`, `/.`, and what is not allowed in a path: spaces, `#`, control characters, non-ASCII. */
const unusual = /[^\x21\x22\x24\x26-\x3a\x3c-\x5b\x5d-\x7e]|\/[./]/

/** Whether all servers read `path` as it is written. One scan; true for nearly every request. */
export function isPlain(path: string): boolean {
  return !unusual.test(path)
}

/** What is not allowed in a path, `\` excepted: D63 counts that as a slash. */
const notInPaths = /[^\x21\x22\x24-\x7e]/

/**
 * The reading of a server that decodes only what cannot be sent otherwise: spaces, control characters, `#`, `?` and
 * non-ASCII. Routes contain these characters unescaped, so this is the form that they are compared with.
 * Undefined when the path is malformed: an escape without two digits, a NUL, or bytes that are not UTF-8.
 */
export function asSent(path: string): string | undefined {
  if (path === '*') return path
  if (!path.startsWith('/') || notInPaths.test(path)) return undefined
  if (!path.includes('%')) return path
  const decoded = decode(path, visibleEscape)
  if (decoded === undefined || decoded.includes('\0')) return undefined
  // RFC 3986 §2.1: escapes are in upper case. Servers that do not decode distinguish them from lower case.
  return smallEscape.test(path) ? path : decoded
}

/** An escape of what cannot be sent otherwise, with a digit in lower case. */
const smallEscape = /%(?:[0189][a-f]|[37]f|[a-f][0-9A-Fa-f]|[A-F][a-f])/

/** Whether `path`, from `asSent`, has readings besides itself. */
export function hasOtherReadings(path: string): boolean {
  return ambiguous.test(path)
}

const ambiguous = /[%;\\]|\/\/|\/\.\.?(?:\/|$)/

/**
 * The budget for all readings of a path, in characters beyond twice its own: half a millisecond of work. A path of 100
 * characters with every kind of ambiguity has some 90 readings and stays below; a long one may have a few kinds.
 */
const MAX_CHARACTERS = 32 * 1024

/** The cost of a reading besides its characters, in characters. */
const READING_CHARACTERS = 256

/**
 * Whether `holds` is true for every reading of `path`, which is from `asSent`. Also false when the path has more readings than
 * the budget allows.
 *
 * The edge decides by the path and forwards it as it was sent, and the service may decode, merge or resolve what the edge does
 * not. So a decision is valid only when it is the same for all readings.
 */
export function holdsForAllReadings(path: string, holds: (reading: string) => boolean): boolean {
  /** How far each was decoded when it was found: a less decoded one leads to all that a more decoded one leads to. */
  const seen = new Map<string, number>()
  const found: { readonly text: string; readonly decoded: number }[] = []
  let left = MAX_CHARACTERS + 2 * path.length
  const add = (text: string, decoded: number): boolean => {
    const before = seen.get(text)
    if (before !== undefined && before <= decoded) return true
    seen.set(text, decoded)
    found.push({ text, decoded })
    left -= text.length + READING_CHARACTERS
    return left >= 0 && holds(text)
  }
  if (!add(path, 0)) return false
  // Grows during the loop: each step may follow any other.
  for (const { text, decoded } of found) {
    for (const step of steps) {
      const next = step(text, decoded)
      if (next !== text && !add(next, decoded)) return false
    }
    for (let stage = decoded + 1; stage < decodings.length && text.includes('%'); stage++) {
      if (!add(decode(text, decodings[stage]) ?? text, stage)) return false
    }
  }
  return true
}

/** What servers do to a path besides decoding it, in any order, before and after. */
const steps: readonly ((text: string, decoded: number) => string)[] = [
  // IIS, and URLs as browsers and `new URL` read them.
  (text) => text.replaceAll('\\', '/'),
  // nginx, Apache, Tomcat.
  (text) => (text.includes('//') ? text.replace(/\/{2,}/g, '/') : text),
  (text) => (text.includes('/.') ? withoutDotSegments(text, dots) : text),
  // `new URL` again: escaped dots climb too, and all else stays unchanged.
  (text, decoded) => (decoded < EVERYTHING && escapedDot.test(text) ? withoutDotSegments(text, escapedDots) : text),
  // Tomcat, Jetty, Spring: `;…` are parameters of the segment.
  (text) => (text.includes(';') ? text.replace(/;[^/]*/g, '') : text),
  // Fastify 4: `;` begins the query.
  (text) => text.split(';', 1)[0] ?? '',
  // `new URL(request.url, base)`, in services on plain Node: what follows `//` is a host.
  (text) => (text.startsWith('//') ? text.replace(/^\/+[^/]*/, '') || '/' : text),
]

const visibleEscape = /%(?=2[1245-9a-f]|3[0-9a-e]|[4-6][0-9a-f]|7[0-9a-e])/gi

/**
 * How much is decoded: nothing more; all but what separates segments and their parameters, as RFC 3986 §6.2.2.2 does with
 * most of it; all but slashes; everything. Each escape is decoded once: `%25` stays until the last step.
 */
const decodings: readonly (RegExp | undefined)[] = [visibleEscape, /%(?=2f|5c|3b|25)/gi, /%(?=2f|25)/gi, undefined]

/** The last of them. */
const EVERYTHING = decodings.length - 1

/** Decodes all escapes but those that `kept` finds; undefined when one is malformed. */
function decode(text: string, kept: RegExp | undefined): string | undefined {
  try {
    return decodeURIComponent(kept === undefined ? text : text.replace(kept, '%25'))
  } catch {
    // Not UTF-8, or a `%` without two hexadecimal digits.
    return undefined
  }
}

const dots: ReadonlyMap<string, number> = new Map([
  ['.', 0],
  ['..', 1],
])
const escapedDot = /%2e/i
const escapedDots: ReadonlyMap<string, number> = new Map([
  ...dots,
  ...['%2e', '%2E'].map((one) => [one, 0] as const),
  ...['.%2e', '.%2E', '%2e.', '%2E.', '%2e%2e', '%2e%2E', '%2E%2e', '%2E%2E'].map((two) => [two, 1] as const),
])

/** RFC 3986 §5.2.4, with how far each segment of dots climbs. */
function withoutDotSegments(path: string, climbs: ReadonlyMap<string, number>): string {
  const kept: string[] = []
  const segments = path.slice(1).split('/')
  const last = segments.length - 1
  for (const [i, segment] of segments.entries()) {
    const climb = climbs.get(segment)
    if (climb === undefined) kept.push(segment)
    else if (climb > 0) kept.pop()
    // A directory stays one: `/a/.` is `/a/`.
    if (climb !== undefined && i === last) kept.push('')
  }
  return `/${kept.join('/')}`
}
