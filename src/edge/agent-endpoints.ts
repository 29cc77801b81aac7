/** Serves what agents bind: each endpoint is an edge of its own, unless somebody else holds the address. */
import { createHash } from 'node:crypto'
import type { EdgeConfig, ModuleSettings } from '../model/edge-config.ts'
import {
  type AddressHolders,
  BindRefusal,
  type EndpointRequest,
  type Endpoints,
  type OpenEndpoint,
  type ServedEndpoint,
} from '../model/endpoint.ts'
import type { AgentModules } from '../modules/agent-options/options.ts'
import type { Edges } from './edges.ts'

export interface AgentEndpointsOptions {
  readonly edges: Edges
  /** The modules that a bind asks for; expensive ones are checked off the event loop. */
  readonly bindModules: (request: EndpointRequest) => Promise<AgentModules | BindRefusal>
  readonly holdersOfName: (name: string) => Promise<AddressHolders>
  readonly holdersOfPort: (port: number) => Promise<AddressHolders>
  /** Takes the place for this tunnel alone, at all data planes; false when somebody else has it. */
  readonly claim: (request: EndpointRequest, served: ServedEndpoint) => Promise<boolean>
  /** Gives the place up. */
  readonly unclaim: (request: EndpointRequest) => void
  /** The ports shown in URLs. */
  readonly publicPorts: { readonly https: number; readonly http: number }
}

/** Error numbers of the vendor, which agents know. */
const ALREADY_ONLINE = 334
const HELD_BY_EDGE = 381
const PORT_UNAVAILABLE = 309

/** Length of a route id: 132 bits. */
const ROUTE_ID_CHARS = 22

export class AgentEndpoints implements Endpoints {
  readonly #options: AgentEndpointsOptions
  /** Names of endpoints that must go when somebody claims a wildcard above them (D66), by endpoint id. */
  readonly #unnamed = new Map<string, string>()

  constructor(options: AgentEndpointsOptions) {
    this.#options = options
  }

  async open(request: EndpointRequest): Promise<OpenEndpoint | BindRefusal> {
    const { edges, holdersOfName, holdersOfPort, claim, unclaim } = this.#options
    const { proto, host, port } = request
    const modules = await this.#options.bindModules(request)
    if (modules instanceof BindRefusal) return modules
    const config = configOf(request, modules)
    const held = port === undefined ? await holdersOfName(host) : await holdersOfPort(port)
    const { hostport, url } = this.#address(request)
    if (held.edgeId !== undefined) {
      return taken(HELD_BY_EDGE, `${hostport} belongs to the edge ${held.edgeId}; detach it there, or ask for another`)
    }
    // D66: a name that has a reservation of its own was taken out of the wildcard.
    const isOwn = request.isNamed === true || held.reservationId !== undefined
    if (held.wildcard && !isOwn) return belowWildcard(host, held.wildcard)
    if (request.isRandom && held.reservationId !== undefined) return taken(ALREADY_ONLINE, `${hostport} is reserved`)
    const compiled = await edges.compileAhead(config)
    const above = isOwn || port !== undefined ? undefined : edges.wildcardEdge(host)
    if (above !== undefined) {
      compiled.release()
      return belowWildcard(host, above)
    }
    const served = { config, isUnnamed: port === undefined && !isOwn }
    const holder = (): string | undefined => edges.holder(proto, port === undefined ? { name: host } : { port })
    const isFree = (): boolean => [undefined, request.id].includes(holder())
    // Whatever this plane knows, only the claim decides between two binds; an edge may have come meanwhile.
    const giveUp = (error: unknown): never => {
      // It may have been granted though the answer did not come.
      unclaim(request)
      compiled.release()
      throw error
    }
    const isOurs = isFree() && (await claim(request, served).catch(giveUp))
    if (!isOurs || !isFree()) {
      if (isOurs) unclaim(request)
      compiled.release()
      return taken(ALREADY_ONLINE, `${hostport} is already online; stop the other tunnel, or ask for another address`)
    }
    const fault = await edges.applyCompiled(config, compiled)
    if (fault) {
      edges.remove(request.id)
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
        edges.remove(request.id)
        unclaim(request)
      },
    }
  }

  /** Endpoints that would have to go if somebody claimed `wildcard`. */
  below(wildcard: string): string[] {
    const ending = wildcard.slice(1)
    return [...this.#unnamed].flatMap(([id, name]) => (name !== wildcard && name.endsWith(ending) ? [id] : []))
  }

  #address({ proto, host, port }: EndpointRequest): { hostport: string; url: string } {
    const { https, http } = this.#options.publicPorts
    const usual = { https: 443, tls: 443, http: 80, tcp: 0 }[proto]
    const actual = port ?? (proto === 'http' ? http : https)
    const hostport = `${host}:${actual}`
    return { hostport, url: `${proto}://${actual === usual ? host : hostport}` }
  }
}

/** The configuration of an endpoint; for HTTP, with one route for all paths. */
function configOf(
  { id, proto, host, port, tunnel, credentialId }: EndpointRequest,
  modules: { edge: ModuleSettings; route: ModuleSettings },
): EdgeConfig {
  const isHttp = proto === 'http' || proto === 'https'
  return {
    id,
    kind: proto,
    names: port === undefined ? [host] : [],
    ports: port === undefined ? [] : [port],
    modules: isHttp ? modules.edge : { ...modules.edge, backend: tunnel },
    routes: isHttp
      ? [
          {
            id: routeIdOf(credentialId),
            matchType: 'path_prefix',
            match: '/',
            modules: { ...modules.route, backend: tunnel },
          },
        ]
      : [],
  }
}

/**
 * Logins of visitors are stored by name and route. They survive a restart of the agent with the same credential, and
 * are not inherited by another credential that gets the name later.
 */
function routeIdOf(credentialId: string): string {
  return createHash('sha256').update(`route of ${credentialId}`).digest('base64url').slice(0, ROUTE_ID_CHARS)
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
