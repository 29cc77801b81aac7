/** Serves the addresses that agents bind, each as an edge of its own, once the control plane has granted them. */
import type { Logger } from '../../lib/log/create-log.ts'
import { publicAuthority } from '../../lib/net/public-authority.ts'
import { type Control, LOOKUP_MS } from '../../link/planes/control-link.ts'
import { refusals } from '../../model/agent-errors.ts'
import {
  type BindQuestion,
  BindRefusal,
  type EndpointRequest,
  type Endpoints,
  type GrantedEndpoint,
  isFreeFor,
  type OpenEndpoint,
} from '../../model/endpoint.ts'
import { LinkFault } from '../../model/link-fault.ts'
import type { EdgeTable } from './edge-table.ts'
import type { EndpointHolders } from './endpoint-holders.ts'

/**
 * How long an agent waits for its address, in milliseconds: the control plane looks up the agent's credential, and who holds the
 * address in the store and at other nodes.
 */
const BIND_MS = 3 * LOOKUP_MS

interface AgentEndpointsOptions {
  readonly edges: EdgeTable
  readonly shared: EndpointHolders
  readonly control: Control
  readonly log: Logger
  /** Whether an endpoint served here belongs to a tunnel at another node: that tunnel may be gone, so the claim decides. */
  readonly isRemote?: (endpointId: string) => boolean
  /** The ports shown in URLs. */
  readonly publicPorts: { readonly https: number; readonly http: number }
}

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
    const granted = await this.#ask(request)
    if (granted instanceof BindRefusal) return granted
    let opened: OpenEndpoint | BindRefusal | undefined
    try {
      opened = await this.#serve(request, granted)
      return opened
    } finally {
      if (opened === undefined || opened instanceof BindRefusal) this.#withdraw(request)
    }
  }

  async #ask(request: EndpointRequest): Promise<GrantedEndpoint | BindRefusal> {
    const { control, log } = this.#options
    const question = { ...request, hostport: this.#shownAddress(request).hostport, served: this.#servedNow(request) }
    try {
      return await control.ask('bind', question, { withinMs: BIND_MS, attachedWithinMs: LOOKUP_MS })
    } catch (error) {
      if (error instanceof BindRefusal) return error
      // The address may be granted although the answer was lost.
      this.#withdraw(request)
      if (!(error instanceof LinkFault)) throw error
      log.warn({ session: request.sessionId, error }, 'credential cannot be looked up')
      return refusals.storeAway()
    }
  }

  /** Gives up an address. */
  #withdraw({ place, tunnel: { tunnelId } }: EndpointRequest): void {
    this.#options.control.tell('unclaim', { place, tunnelId })
  }

  async #serve(
    request: EndpointRequest,
    { reservationId: reserved, ...served }: GrantedEndpoint,
  ): Promise<OpenEndpoint | BindRefusal> {
    const { edges, shared } = this.#options
    const { id, host, port, tunnel } = request
    const { config, isUnnamed } = served
    const { url, hostport } = this.#shownAddress(request)
    const compiled = await shared.compile(config)
    // An edge may have come meanwhile.
    const above = isUnnamed ? edges.wildcardEdge(host) : undefined
    if (above !== undefined || !isFreeFor(config.id, { ...request, served: this.#servedNow(request) })) {
      compiled?.release()
      return above === undefined ? refusals.alreadyOnline(hostport) : refusals.belowWildcard(host, above)
    }
    const holder = tunnel.tunnelId
    const fault = await shared.serve(config, compiled, holder)
    if (fault) {
      shared.letGo(config.id, holder)
      return refusals.portUnavailable(port)
    }
    if (isUnnamed) this.#unnamed.set(id, host)
    return {
      url,
      hostport,
      ...(reserved !== undefined && (port === undefined ? { domainId: reserved } : { tcpAddrId: reserved })),
      served,
      handOver: () => void this.#unnamed.delete(id),
      close: () => {
        this.#unnamed.delete(id)
        shared.letGo(config.id, holder)
        this.#withdraw(request)
      },
    }
  }

  /** Endpoints that a claim of `wildcard` displaces. */
  below(wildcard: string): string[] {
    const ending = wildcard.slice(1)
    return [...this.#unnamed].flatMap(([id, name]) => (name !== wildcard && name.endsWith(ending) ? [id] : []))
  }

  /** What is served at an address by now. */
  #servedNow({ proto, host, port }: EndpointRequest): BindQuestion['served'] {
    const { edges, isRemote } = this.#options
    const edgeId = edges.holder(proto, port === undefined ? { name: host } : { port })
    return edgeId === undefined ? undefined : { edgeId, isRemote: isRemote?.(edgeId) === true }
  }

  #shownAddress({ proto, host, port }: EndpointRequest): { hostport: string; url: string } {
    const { https, http } = this.#options.publicPorts
    const actual = port ?? (proto === 'http' ? http : https)
    return { hostport: `${host}:${actual}`, url: `${proto}://${publicAuthority(proto, host, actual)}` }
  }
}
