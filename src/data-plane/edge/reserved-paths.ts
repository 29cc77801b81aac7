/** Paths that modules reserve on all hosts of an edge, such as the callback of an identity provider. */

import { type Phases, pathOfRoute, type Reserved, type ReservedRequest } from '../../modules/phases.ts'
import type { Route } from './compiled-edge.ts'
import type { Matched } from './route-table.ts'

/** A request for a reserved path, before any module has seen it. */
export interface AskedFor extends Pick<ReservedRequest, 'host' | 'query' | 'headers'> {
  readonly path: string
  /** The route of a path; undefined when there is none, or when readings of the path disagree. */
  readonly routeOf: (path: string) => Route | undefined
}

export interface ReservedPaths {
  has(path: string): boolean
  /** The route whose module answers; undefined when none claims the request. */
  routeFor(request: AskedFor): Route | undefined
}

/** A compiled route and what its modules reserve. */
export interface Reserving {
  readonly matched: Matched
  readonly route: Route
  readonly phases: readonly Phases[]
}

/** Undefined when nothing is reserved, as on most edges. */
export function reservedPaths(routes: readonly Reserving[]): ReservedPaths | undefined {
  const byPath = new Map<string, { readonly route: Route; readonly pathUse: Reserved['pathUse'] }[]>()
  for (const { route, phases } of [...routes].sort(byMatching)) {
    for (const { path: template, pathUse } of phases.flatMap(({ reserves }) => reserves ?? [])) {
      const path = pathOfRoute(template, route.id)
      const applicants = byPath.get(path) ?? []
      applicants.push({ route, pathUse })
      byPath.set(path, applicants)
    }
  }
  if (byPath.size === 0) return undefined
  return {
    has: (path) => byPath.has(path),
    routeFor({ host, path, query, headers, routeOf }) {
      let spare: Route | undefined
      for (const { route, pathUse } of byPath.get(path) ?? []) {
        const use = pathUse({ host, query, headers, routeId: route.id, serves: (other) => routeOf(other) === route })
        if (use === 'own') return route
        if (use === 'spare') spare ??= route
      }
      return spare
    },
  }
}

/** D52: in the order in which routes match, most specific first. */
function byMatching({ matched: a }: Reserving, { matched: b }: Reserving): number {
  if (a.matchType !== b.matchType) return a.matchType === 'exact_path' ? -1 : 1
  return b.match.length - a.match.length
}
