/** The routes of an edge by path: the exact one, else the longest prefix (D41), at a cost that more routes do not raise. */

export interface Matched {
  readonly matchType: 'exact_path' | 'path_prefix'
  readonly match: string
}

/** Gives back how to find the route of a canonical path. */
export function routeTable<T>(routes: readonly (readonly [Matched, T])[]): (path: string) => T | undefined {
  const exact = new Map<string, T>()
  const prefixes = new Map<string, T>()
  for (const [{ matchType, match }, route] of routes) (matchType === 'exact_path' ? exact : prefixes).set(match, route)
  // Longest first. One look for each length there is, not for each route.
  const lengths = [...new Set([...prefixes.keys()].map((prefix) => prefix.length))].sort((a, b) => b - a)
  return (path) => {
    const found = exact.get(path)
    if (found !== undefined) return found
    for (const length of lengths) {
      if (length > path.length) continue
      const route = prefixes.get(length === path.length ? path : path.slice(0, length))
      if (route !== undefined) return route
    }
    return undefined
  }
}
