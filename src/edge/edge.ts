/** An edge ready for traffic: its configuration compiled once, so that connections and requests look nothing up. */
import type { EdgeKind } from '../model/edge-config.ts'
import type { Phases, TlsDemands } from '../modules/phases.ts'
import type { ReservedPaths } from './reserved-paths.ts'
import type { Backend } from './target.ts'

export interface Edge {
  readonly id: string
  readonly kind: EdgeKind
  /** Whether an agent brought it; then `postern` is told `none` as the kind of edge. */
  readonly isEndpoint: boolean
  readonly names: readonly string[]
  readonly ports: readonly number[]
  /** Why nothing passes: a module of the edge itself cannot be compiled. */
  readonly broken: string | undefined
  /** Set while it is compiled for the first time: visitors may wait for this. It is broken until then. */
  readonly starting: Promise<void> | undefined
  /** Null where TLS is passed through, or where there is none. */
  readonly tls: TlsDemands | null
  /** Equal for equal demands: a connection made under others must not be used any more. */
  readonly tlsKey: string
  readonly accept: readonly NonNullable<Phases['accept']>[]
  readonly handshake: readonly NonNullable<Phases['handshake']>[]
  /** Of TCP and TLS edges. */
  readonly backend: Backend | undefined
  /** Of edges that speak HTTP: D41. `path` is one reading of a path. */
  route(path: string): Route | undefined
  /** The only route, when it takes every path: then it does not matter how a path is read. */
  readonly everyPath: Route | undefined
  /** Paths that modules keep for themselves: asked before routes. */
  readonly reserved: ReservedPaths | undefined
}

/** A route ready for traffic. Each list is in its order of execution. */
export interface Route {
  readonly id: string
  /** Why nothing passes: a module cannot be compiled. */
  readonly broken: string | undefined
  /** Whether a module decides by the path, so that it must have one reading (D63). */
  readonly readsPath: boolean
  readonly request: readonly NonNullable<Phases['request']>[]
  readonly upstream: readonly NonNullable<Phases['upstream']>[]
  readonly response: readonly NonNullable<Phases['response']>[]
  /** Names of headers, in lower case, that `upstream` and `response` remove: trailers of these names go no further. */
  readonly removedFromRequest: ReadonlySet<string>
  readonly removedFromResponse: ReadonlySet<string>
  readonly done: readonly NonNullable<Phases['done']>[]
  readonly bridge: Phases['bridge']
  readonly backend: Backend | undefined
}
