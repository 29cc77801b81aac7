/** An edge ready for traffic: its configuration compiled once, so that connections and requests look nothing up. */
import type { MinuteLog } from '../../lib/log/minute-log.ts'
import type { EdgeConfig } from '../../model/edge-config.ts'
import type { VisitorErrorCode } from '../../model/visitor-errors.ts'
import type { ConnectionVerdict, Phases, TlsDemands } from '../../modules/phases.ts'
import type { Backend } from './dial.ts'
import type { ReservedPaths } from './reserved-paths.ts'

export interface Edge extends Pick<EdgeConfig, 'id' | 'kind' | 'names' | 'ports'> {
  /** Whether it is an endpoint of an agent; the agent then gets `none` as the kind of edge. */
  readonly isEndpoint: boolean
  /** The owner of an endpoint; undefined for an edge, which belongs to the account. */
  readonly ownerId: string | undefined
  /** Set when a module of the edge itself cannot be compiled: why nothing passes. */
  readonly broken: string | undefined
  /** Set during its first compilation: visitors may wait for this. Until then the edge is broken. */
  readonly starting: Promise<void> | undefined
  /** Null where TLS passes through, and on edges without TLS. */
  readonly tls: TlsDemands | null
  /** Equal for equal demands on TLS; a connection made under other demands must not be used any more. */
  readonly tlsKey: string
  readonly accept: readonly NonNullable<Phases['accept']>[]
  readonly handshake: readonly NonNullable<Phases['handshake']>[]
  /** TCP and TLS edges only. */
  readonly backend: Backend | undefined
  /** HTTP only: finds the route (D41) for one reading of a path. */
  route(path: string): Route | undefined
  /** The only route, if it takes every path; then it does not matter how a path is read. */
  readonly everyPath: Route | undefined
  /** Paths that modules reserve; they are checked before routes. */
  readonly reserved: ReservedPaths | undefined
}

/** Why an edge refuses all visitors; undefined when it is compiled. */
export function brokenCode({ broken, starting }: Edge): VisitorErrorCode | undefined {
  if (broken === undefined) return undefined
  return starting ? 'EDGE_STARTING' : 'MODULE_UNAVAILABLE'
}

/** The first refusal; a phase that throws is broken, which is noted, and refuses all visitors. */
export function firstVerdict<P>(
  { id }: Edge,
  phases: readonly P[],
  ask: (phase: P) => ConnectionVerdict,
  broken?: BrokenPhases,
): VisitorErrorCode | undefined {
  for (const phase of phases) {
    try {
      const verdict = ask(phase)
      if (verdict) return verdict.refuse
    } catch (err) {
      broken?.note({ edge: id, err }, `${id} ${String(err)}`)
      return 'BROKEN_MODULE'
    }
  }
  return undefined
}

/** Keeps visitors of a broken edge from filling the log. */
export type BrokenPhases = MinuteLog<{ readonly edge: string; readonly err: unknown }>

/** A route ready for traffic. Each list is in its order of execution. */
export interface Route {
  readonly id: string
  /** Set when a module cannot be compiled: why nothing passes. */
  readonly broken: string | undefined
  /** Whether a module decides by the path, so that it must have one reading (D63). */
  readonly readsPath: boolean
  /** Judge the address of a request that is open while the route changes; new ones are judged by `request`. */
  readonly accept: readonly NonNullable<Phases['accept']>[]
  readonly request: readonly NonNullable<Phases['request']>[]
  readonly upstream: readonly NonNullable<Phases['upstream']>[]
  readonly response: readonly NonNullable<Phases['response']>[]
  /**
   * Names of headers, in lower case, that `upstream` and `response` remove; trailers of these names are dropped as
   * well.
   */
  readonly removedFromRequest: ReadonlySet<string>
  readonly removedFromResponse: ReadonlySet<string>
  readonly done: readonly NonNullable<Phases['done']>[]
  readonly bridge: Phases['bridge']
  readonly backend: Backend | undefined
}
