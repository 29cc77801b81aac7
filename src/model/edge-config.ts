/**
 * What the data plane is told of one edge: plain data in which everything that was referenced is written out. An endpoint
 * that an agent asked for is an edge too, with one name or port and that agent's tunnel as backend.
 */

/** `http` is served on the plain listener and exists for endpoints of agents alone. */
export type EdgeKind = 'tcp' | 'tls' | 'https' | 'http'

export interface EdgeConfig {
  /** `edgtcp_…`, `edgtls_…`, `edghts_…`; `ep_…` for an endpoint of an agent. */
  readonly id: string
  readonly kind: EdgeKind
  /** Normalised names, exact or `*.…`; none for TCP. */
  readonly names: readonly string[]
  /** Ports to listen on; for TCP alone. */
  readonly ports: readonly number[]
  /** Modules of the edge itself. */
  readonly modules: ModuleSettings
  /** Of HTTPS edges and of endpoints that speak HTTP. */
  readonly routes: readonly RouteConfig[]
  /** Why its modules cannot be served, found before anything was compiled: nothing passes. */
  readonly broken?: string
}

export interface RouteConfig {
  readonly id: string
  readonly matchType: 'exact_path' | 'path_prefix'
  readonly match: string
  readonly modules: ModuleSettings
  readonly broken?: string
}

/** By name of the module, those that are enabled; each value is what that module's `compile` takes. */
export type ModuleSettings = Readonly<Record<string, unknown>>

/** Where traffic goes in the end: what the `backend` module is given. */
export type BackendPlan =
  | TunnelPlan
  | { readonly kind: 'tunnel_group'; readonly id: string; readonly labels: Readonly<Record<string, string>> }
  | {
      readonly kind: 'http_response'
      readonly id: string
      readonly status: number
      readonly headers: Readonly<Record<string, string>>
      readonly body: string
    }
  | {
      readonly kind: 'weighted'
      readonly id: string
      readonly children: readonly { readonly weight: number; readonly plan: BackendPlan }[]
    }
  | { readonly kind: 'failover'; readonly id: string; readonly children: readonly BackendPlan[] }
  | {
      readonly kind: 'static'
      readonly id: string
      readonly host: string
      readonly port: number
      readonly tls: boolean
    }

/** The one tunnel behind an endpoint of an agent. */
export interface TunnelPlan {
  readonly kind: 'tunnel'
  readonly tunnelId: string
  /** What to speak over a stream that carries HTTP. */
  readonly httpVersion: 1 | 2
  /** Which PROXY header begins each stream; 0 for none. */
  readonly proxyHeader: 0 | 1 | 2
}
