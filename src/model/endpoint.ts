/** The port through which the agents' listener asks the data plane to serve an address that an agent wants to bind. */

import type { EdgeConfig, ModuleSettings, TunnelPlan } from './edge-config.ts'
import type { PoolMember } from './pool.ts'
import type { PresentEndpoint } from './presence.ts'

/** The most options of one bind: far more than agents send, and few enough to search through. */
export const MAX_BIND_OPTIONS = 200

/** A bind whose address is already chosen. */
export interface EndpointRequest {
  /** `ep_…` */
  readonly id: string
  readonly proto: 'http' | 'https' | 'tcp' | 'tls'
  /** Normalised; for TCP the host in the URL. */
  readonly host: string
  /** Only for TCP. */
  readonly port: number | undefined
  /** The key that two endpoints cannot share. */
  readonly place: string
  /** The server chose the name or port, so it must not be a reserved one. */
  readonly isRandom: boolean
  readonly tunnel: TunnelPlan
  /** Whether it may share its address with other tunnels of its owner. */
  readonly isPooled: boolean
  /** The session and the credential of the agent. */
  readonly sessionId: string
  readonly credentialId: string
  /** The options of the bind, as the agent spelled them. */
  readonly opts: Readonly<Record<string, unknown>>
}

/** A bind as a data plane asks its control plane, which alone decides it. */
export interface BindQuestion extends EndpointRequest {
  /** Its address as agents see it. */
  readonly hostport: string
  /**
   * What the data plane serves at the address by now: the control plane may have started just now, and not know it yet. A distant
   * one belongs to a tunnel at another node that may be gone, so that the claim decides.
   */
  readonly served: { readonly edgeId: string; readonly isRemote: boolean } | undefined
}

/** Whether a bind that would serve the edge `id` may have its address, whatever the data plane serves there. */
export function isFreeFor(id: string, { served, isPooled, isRandom }: Omit<BindQuestion, 'hostport'>): boolean {
  // A random choice never joins a pool.
  if (served?.edgeId === id) return !(isPooled && isRandom)
  return served === undefined || served.isRemote
}

/** The holders of an address in the store. */
export interface AddressHolders {
  /** The edge that has it, or the agent ingress. */
  readonly edgeId: string | undefined
  /** The reserved domain or address that keeps it. */
  readonly reservationId: string | undefined
  /** The nearest wildcard above a name that an edge or a reserved domain holds (D66). */
  readonly wildcard?: { readonly name: string; readonly holderId: string } | undefined
  /** Why only a reservation could allow the name: no proof says that it belongs here. */
  readonly unproven?: string | undefined
}

/** The configuration that is served at an endpoint. */
export interface ServedEndpoint {
  readonly config: EdgeConfig
  /**
   * A digest of all that is served: another node with an older one must fetch the configuration again before it admits
   * visitors. In a pool, where any member may be dialled, it leaves out what members differ in.
   */
  readonly version: string
  /** Set when other tunnels may have this address too. */
  readonly pool?: PoolMember | undefined
  /** Whether its name must be given up when a wildcard above it is claimed (D66). */
  readonly isUnnamed: boolean
}

/** The modules that the options of a bind ask for. */
export interface AgentModules {
  readonly edge: ModuleSettings
  /** Empty for `tcp` and `tls`. */
  readonly route: ModuleSettings
}

/** The answer to a bind that gets its address. */
export interface GrantedEndpoint extends ServedEndpoint {
  /** The reserved domain or reserved address that it uses. */
  readonly reservationId: string | undefined
}

export interface OpenEndpoint extends Pick<PresentEndpoint, 'hostport' | 'domainId' | 'tcpAddrId'> {
  /** `https://name` or `tcp://host:port`, with the public port unless that is the default. */
  readonly url: string
  /** The configuration that is served there, for other data planes. */
  readonly served: ServedEndpoint
  /** Admits no new visitors; connected ones may go on. */
  close(): void
  /** Leaves the address open, because another data plane has the tunnel now. */
  handOver(): void
}

export interface Endpoints {
  /** The endpoint is served from the moment this resolves. */
  open(request: EndpointRequest): Promise<OpenEndpoint | BindRefusal>
}

/** Why an agent does not get the address it asked for; if `isTaken`, another name or port may be free. */
export class BindRefusal extends Error {
  /** The vendor's error number, which SDKs look for. */
  readonly ngrok: number
  readonly isTaken: boolean

  constructor(ngrok: number, message: string, { isTaken = false }: { isTaken?: boolean } = {}) {
    super(message)
    this.name = 'BindRefusal'
    this.ngrok = ngrok
    this.isTaken = isTaken
  }
}
