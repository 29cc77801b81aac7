/** The edge configuration: all that the data plane knows of one edge, as plain data with references resolved. */

/** `http` is served on the plain listener; only endpoints of agents have it. */
export type EdgeKind = 'tcp' | 'tls' | 'https' | 'http'

/** An endpoint that an agent opened is an edge too, with one name or port and that agent's tunnel as backend. */
export interface EdgeConfig {
  /** `edgtcp_…`, `edgtls_…`, `edghts_…`; `ep_…` for an endpoint of an agent. */
  readonly id: string
  readonly kind: EdgeKind
  /** The user or bot whose agent opened the endpoint; undefined for an edge, and when an earlier version sent it. */
  readonly ownerId?: string | undefined
  /** Normalised names, exact or `*.…`; none for TCP. */
  readonly names: readonly string[]
  /** Ports to listen on; only for TCP. */
  readonly ports: readonly number[]
  /** Modules of the edge itself. */
  readonly modules: ModuleSettings
  /** Only HTTPS edges and HTTP endpoints have routes. */
  readonly routes: readonly RouteConfig[]
  /** Why the modules cannot be compiled, if that is known beforehand; then no traffic passes. */
  readonly broken?: string
}

export interface RouteConfig extends Pick<EdgeConfig, 'id' | 'modules' | 'broken'> {
  readonly matchType: 'exact_path' | 'path_prefix'
  readonly match: string
}

/** The enabled modules by name; each value is the argument of that module's `compile`. */
export type ModuleSettings = Readonly<Record<string, unknown>>

/** Where traffic goes: the settings of the `backend` module. */
export type BackendPlan =
  | TunnelPlan
  | {
      readonly kind: 'tunnel_group'
      readonly id: string
      readonly labels: Readonly<Record<string, string>>
      /** Set for the pool at an agent's address, whose tunnels have one owner. */
      readonly pool?: Pick<TunnelPlan, 'proxyHeader'>
    }
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
  /** The version of HTTP to use on the tunnel's streams. */
  readonly httpVersion: 1 | 2
  /** The version of the PROXY header at the start of each stream; 0 for none. */
  readonly proxyHeader: 0 | 1 | 2
  /** The version that admits the visitors dialled for. Only for a tunnel at another node; see `ServedEndpoint`. */
  readonly version?: string | undefined
}

/** Whether several tunnels may be behind an endpoint of agents; its id then stands for all of them. */
export function isPool({ modules, routes }: EdgeConfig): boolean {
  const plan = (routes[0]?.modules.backend ?? modules.backend) as BackendPlan | undefined
  return plan?.kind === 'tunnel_group' && plan.pool !== undefined
}

/** The version of HTTP that the tunnel of an agent's endpoint speaks. */
export function httpVersionOf({ modules, routes }: EdgeConfig): 1 | 2 {
  const plan = (routes[0]?.modules.backend ?? modules.backend) as { readonly httpVersion?: 1 | 2 } | undefined
  return plan?.httpVersion ?? 1
}

/** An agent's endpoint with its version, so that each dial tells its node which version admitted the visitor. */
export function withVersion(config: EdgeConfig, version: string): EdgeConfig {
  const of = (modules: ModuleSettings): ModuleSettings => {
    const plan = modules.backend as BackendPlan | undefined // see `BackendPlan`
    return plan?.kind === 'tunnel' ? { ...modules, backend: { ...plan, version } } : modules
  }
  const routes = config.routes.map((route) => ({ ...route, modules: of(route.modules) }))
  return { ...config, modules: of(config.modules), routes }
}
