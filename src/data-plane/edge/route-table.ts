/**
 * Finds the route of a path: the exact one, else the longest prefix (D41), at a cost that does not grow with the number
 * of routes.
 */

export interface Matched {
  readonly matchType: 'exact_path' | 'path_prefix'
  readonly match: string
}

/**
 * Prefixes sorted by code units, so that longer ones follow those they begin with. Stored in columns: a thousand may
 * begin with one another, and walking along this chain must not touch the strings.
 */
interface Prefixes<T> {
  readonly matches: readonly string[]
  readonly routes: readonly T[]
  readonly lengths: Int32Array
  /** Index of the longest other prefix that this one begins with; `NONE` when there is none. */
  readonly within: Int32Array
}

const NONE = -1

/** Returns a function that finds the route of a path. */
export function routeTable<T>(routes: readonly (readonly [Matched, T])[]): (path: string) => T | undefined {
  const every = routeOfEveryPath(routes)
  if (every !== undefined) return (path) => (path.startsWith('/') ? every : undefined)
  const exact = new Map<string, T>()
  const prefixes = new Map<string, T>()
  for (const [{ matchType, match }, route] of routes) (matchType === 'exact_path' ? exact : prefixes).set(match, route)
  const sorted = inOrder(prefixes)
  return (path) => exact.get(path) ?? longest(sorted, path)
}

/** The only route, when it takes every path. */
export function routeOfEveryPath<T>(routes: readonly (readonly [Matched, T])[]): T | undefined {
  const [first] = routes
  if (!first || routes.length > 1) return undefined
  const [{ matchType, match }, route] = first
  return matchType === 'path_prefix' && match === '/' ? route : undefined
}

function inOrder<T>(prefixes: ReadonlyMap<string, T>): Prefixes<T> {
  const sorted = [...prefixes].sort(([a], [b]) => (a < b ? -1 : 1))
  const matches = sorted.map(([match]) => match)
  const within = new Int32Array(matches.length)
  for (const [at, match] of matches.entries()) {
    let other = at - 1
    while (other !== NONE && !match.startsWith(matches[other] ?? '')) other = within[other] ?? NONE
    within[at] = other
  }
  return {
    matches,
    routes: sorted.map(([, route]) => route),
    lengths: Int32Array.from(matches, ({ length }) => length),
    within,
  }
}

function longest<T>({ matches, routes, lengths, within }: Prefixes<T>, path: string): T | undefined {
  // The last prefix that does not sort after the path begins with every prefix that the path begins with.
  let at = firstBehind(matches, path) - 1
  const shared = sharedLength(matches[at] ?? '', path)
  while (at !== NONE && (lengths[at] ?? 0) > shared) at = within[at] ?? NONE
  return routes[at]
}

function firstBehind(sorted: readonly string[], path: string): number {
  let low = 0
  let high = sorted.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((sorted[middle] ?? '') <= path) low = middle + 1
    else high = middle
  }
  return low
}

/** How many characters `text` and the start of `path` have in common. */
function sharedLength(text: string, path: string): number {
  if (path.startsWith(text)) return text.length
  let length = 0
  while (text.charCodeAt(length) === path.charCodeAt(length)) length++
  return length
}
