/** Serves the addresses that agents bind: each endpoint is an edge of its own, unless another holds its address. */
import { createHash } from 'node:crypto'
import { ID_LENGTH } from '../../lib/ids.ts'
import { publicAuthority } from '../../lib/net/public-authority.ts'
import type { AgentModules, BackendPlan, EdgeConfig, ModuleSettings } from '../../model/edge-config.ts'
import {
  type AddressHolders,
  BindRefusal,
  type EndpointRequest,
  type Endpoints,
  type OpenEndpoint,
  type ServedEndpoint,
} from '../../model/endpoint.ts'
import { type PoolDifference, poolLabels, poolVersion } from '../../model/pool.ts'
import type { Edges } from './edge-table.ts'
import type { SharedEdges } from './endpoint-holders.ts'

interface AgentEndpointsOptions {
  readonly edges: Edges
  readonly shared: SharedEdges
  /** The modules that a bind asks for; expensive ones are checked off the event loop. */
  readonly bindModules: (request: EndpointRequest) => Promise<AgentModules | BindRefusal>
  readonly holdersOfName: (name: string) => Promise<AddressHolders>
  readonly holdersOfPort: (port: number) => Promise<AddressHolders>
  /** Claims the place for this tunnel alone, at all data planes; false when another has it. */
  readonly claim: (request: EndpointRequest, served: ServedEndpoint) => Promise<boolean>
  /** Why a claim was refused, when the place is or would be a pool; undefined when unknown. Never rejects. */
  readonly whyTaken: (request: EndpointRequest, served: ServedEndpoint) => Promise<PoolDifference | undefined>
  /** A digest with a key that all nodes have: base64url of 256 bits. */
  readonly digest: (text: string) => string
  /** Gives up the place. */
  readonly unclaim: (request: EndpointRequest) => void
  /** Whether an endpoint served here belongs to a tunnel at another node: it may be gone, so the claim decides. */
  readonly isDistant?: (endpointId: string) => boolean
  /** The ports shown in URLs. */
  readonly publicPorts: { readonly https: number; readonly http: number }
}

/** Error numbers of the vendor, which agents know. */
const ALREADY_ONLINE = 334
const HELD_BY_EDGE = 381
const PORT_UNAVAILABLE = 309
const NOT_PROVEN = 320

/** Length of a version: 192 bits, in `VERSION_CHARACTERS`. */
const VERSION_CHARS = 32

/** Length of a route id: 132 bits. */
const ROUTE_ID_CHARS = 22

export class AgentEndpoints implements Endpoints {
  readonly #options: AgentEndpointsOptions
  /** Names of endpoints that a claim of a wildcard above them displaces (D66), by endpoint id. */
  readonly #unnamed = new Map<string, string>()
  /** Ids of endpoints that are being opened, once for each request. */
  readonly #opening: string[] = []

  constructor(options: AgentEndpointsOptions) {
    this.#options = options
  }

  /** Whether an endpoint is being opened; once it is open, its tunnel is online. */
  isOpening(endpointId: string): boolean {
    return this.#opening.includes(endpointId)
  }

  async open(request: EndpointRequest): Promise<OpenEndpoint | BindRefusal> {
    this.#opening.push(request.id)
    try {
      return await this.#open(request)
    } finally {
      // The caller resumes first and puts the tunnel online.
      setImmediate(() => this.#opening.splice(this.#opening.indexOf(request.id), 1))
    }
  }

  async #open(request: EndpointRequest): Promise<OpenEndpoint | BindRefusal> {
    const { edges, shared, holdersOfName, holdersOfPort, claim, unclaim, digest } = this.#options
    const { proto, host, port } = request
    const modules = await this.#options.bindModules(request)
    if (modules instanceof BindRefusal) return modules
    const { config, version } = (request.pool ? poolConfig : ownConfig)(request, modules, digest)
    const held = port === undefined ? await holdersOfName(host) : await holdersOfPort(port)
    const { hostport, url } = this.#address(request)
    if (held.edgeId !== undefined) {
      const whose = held.edgeId.startsWith('agin_') ? 'the agent ingress' : 'the edge'
      return taken(HELD_BY_EDGE, `${hostport} belongs to ${whose} ${held.edgeId}; detach it there, or ask for another`)
    }
    if (held.unproven !== undefined) return new BindRefusal(NOT_PROVEN, held.unproven)
    // D66: a name with a reservation of its own is exempt from the wildcard.
    const isOwn = request.isNamed === true || held.reservationId !== undefined
    if (held.wildcard && !isOwn) return belowWildcard(host, held.wildcard)
    if (request.isRandom && held.reservationId !== undefined) return taken(ALREADY_ONLINE, `${hostport} is reserved`)
    const compiled = await shared.compile(config)
    const above = isOwn || port !== undefined ? undefined : edges.wildcardEdge(host)
    if (above !== undefined) {
      compiled?.release()
      return belowWildcard(host, above)
    }
    const served = { config, version, isUnnamed: port === undefined && !isOwn, pool: request.pool }
    const isFree = (): boolean => {
      const at = edges.holder(proto, port === undefined ? { name: host } : { port })
      // A random choice never joins a pool.
      if (at === config.id) return !(request.pool && request.isRandom)
      return at === undefined || this.#options.isDistant?.(at) === true
    }
    // Only the claim decides between two binds, whatever this plane knows; and an edge may have come meanwhile.
    const giveUp = (error: unknown): never => {
      // The claim may have been granted although its answer was lost.
      unclaim(request)
      compiled?.release()
      throw error
    }
    const isOurs = isFree() && (await claim(request, served).catch(giveUp))
    if (!isOurs || !isFree()) {
      if (isOurs) unclaim(request)
      compiled?.release()
      return taken(ALREADY_ONLINE, `${hostport} ${whyNot(await this.#options.whyTaken(request, served))}`)
    }
    const holder = request.tunnel.tunnelId
    const fault = await shared.serve(config, compiled, holder)
    if (fault) {
      shared.letGo(config.id, holder)
      unclaim(request)
      return taken(PORT_UNAVAILABLE, `port ${port} cannot be opened on this server; ask for another`)
    }
    if (served.isUnnamed) this.#unnamed.set(request.id, host)
    const reserved = held.reservationId
    return {
      url,
      hostport,
      ...(reserved !== undefined && (port === undefined ? { domainId: reserved } : { tcpAddrId: reserved })),
      served,
      handOver: () => void this.#unnamed.delete(request.id),
      close: () => {
        this.#unnamed.delete(request.id)
        shared.letGo(config.id, holder)
        unclaim(request)
      },
    }
  }

  /** Endpoints that a claim of `wildcard` displaces. */
  below(wildcard: string): string[] {
    const ending = wildcard.slice(1)
    return [...this.#unnamed].flatMap(([id, name]) => (name !== wildcard && name.endsWith(ending) ? [id] : []))
  }

  #address({ proto, host, port }: EndpointRequest): { hostport: string; url: string } {
    const { https, http } = this.#options.publicPorts
    const actual = port ?? (proto === 'http' ? http : https)
    return { hostport: `${host}:${actual}`, url: `${proto}://${publicAuthority(proto, host, actual)}` }
  }
}

interface Configured {
  readonly config: EdgeConfig
  readonly version: string
}

/**
 * An endpoint of a single tunnel. An agent that comes back for the same address gets the same version, so that other
 * nodes can reach it with what they know, even while they get no news.
 */
function ownConfig(
  request: EndpointRequest,
  modules: AgentModules,
  digest: AgentEndpointsOptions['digest'],
): Configured {
  const { id, tunnel, credentialId } = request
  const identity = { id, routeId: routeIdOf(credentialId), ownerId: request.ownerId, backend: tunnel }
  const config = configOf(request, modules, identity)
  return { config, version: digest(`endpoint ${JSON.stringify(config)}`).slice(0, VERSION_CHARS) }
}

/** The pool at an address: the same for all tunnels that may share it. */
function poolConfig(
  request: EndpointRequest,
  modules: AgentModules,
  digest: AgentEndpointsOptions['digest'],
): Configured {
  const { place, pool, credentialId } = request
  const { proxyHeader } = request.tunnel
  const ownerId = pool?.ownerId ?? credentialId
  const like = { kind: 'tunnel_group', id: '', labels: {}, pool: { proxyHeader } } as const
  const version = poolVersion(configOf(request, modules, { id: '', routeId: '', backend: like }), digest)
  // It has the form of an id, but is derived from a digest.
  const id = `ep_${digest(`pool ${place} ${ownerId} ${version}`).replaceAll(/[-_]/g, '0').slice(0, ID_LENGTH)}`
  const backend = { ...like, id, labels: poolLabels(id) }
  return { config: configOf(request, modules, { id, routeId: routeIdOf(ownerId), ownerId, backend }), version }
}

interface Identity {
  readonly id: string
  readonly routeId: string
  readonly ownerId?: string | undefined
  readonly backend: BackendPlan
}

/** The configuration of an endpoint; for HTTP, with one route for all paths. */
function configOf(
  { proto, host, port }: EndpointRequest,
  modules: { edge: ModuleSettings; route: ModuleSettings },
  { id, routeId, ownerId, backend }: Identity,
): EdgeConfig {
  const isHttp = proto === 'http' || proto === 'https'
  return {
    id,
    kind: proto,
    ...(ownerId !== undefined && { ownerId }),
    names: port === undefined ? [host] : [],
    ports: port === undefined ? [] : [port],
    modules: isHttp ? modules.edge : { ...modules.edge, backend },
    routes: isHttp
      ? [
          {
            id: routeId,
            matchType: 'path_prefix',
            match: '/',
            modules: { ...modules.route, backend },
          },
        ]
      : [],
  }
}

/**
 * Logins of visitors are stored by name and route. They survive a restart of the agent with the same credential, and
 * are not inherited by another credential that gets the name later; in a pool the same goes for the owner.
 */
function routeIdOf(holderId: string): string {
  return createHash('sha256').update(`route of ${holderId}`).digest('base64url').slice(0, ROUTE_ID_CHARS)
}

function belowWildcard(name: string, { name: wildcard, holderId }: { name: string; holderId: string }): BindRefusal {
  return new BindRefusal(
    HELD_BY_EDGE,
    `${name} stands below ${wildcard}, which ${holderId} holds; use a credential whose ACL has the rule bind:${name} or bind:${wildcard}`,
  )
}

function taken(ngrok: number, message: string): BindRefusal {
  return new BindRefusal(ngrok, message, { isTaken: true })
}

/** Why an address that is taken cannot be shared. The vendor has one number for all of it. */
function whyNot(difference: PoolDifference | undefined): string {
  const other = 'stop the other tunnel, or ask for another address'
  switch (difference) {
    case 'is alone':
      return `is already online, with a tunnel that does not share its address; start both with pooling, or ${other}`
    case 'owner':
      return 'is already online, and belongs to another owner; ask for another address'
    case 'protocol':
    case 'policy':
    case 'guards':
      return `is already online, and ${differs[difference]} of the tunnels there; start all with the same, or ${other}`
    case 'asks alone':
    case undefined:
      return `is already online; ${other}`
  }
}

const differs = {
  protocol: 'the protocol, or the PROXY header, of this tunnel is not that',
  policy: 'the traffic policy of this tunnel is not that',
  guards: 'the guards and other options of this tunnel are not those',
} as const
