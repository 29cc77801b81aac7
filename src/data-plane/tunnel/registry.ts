/** The sessions online at this data plane and their tunnels: the API lists them, and visitors are routed by them. */
import { timestamp } from '../../lib/clock.ts'
import { Shelf } from '../../lib/sorted-id-map.ts'
import { type Dial, DialFault, type FollowGroup } from '../../model/dial.ts'
import { Refusal } from '../../model/errors.ts'
import { LabelGroups, type LabelledTunnel } from '../../model/label-groups.ts'
import type {
  AgentCommand,
  Presence,
  PresencePage,
  PresentEndpoint,
  PresentSession,
  PresentTunnel,
} from '../../model/presence.ts'
import { type Elsewhere, nowhere } from './interfaces.ts'
import type { LiveSession, Tunnel } from './session-types.ts'

export class Registry implements Omit<Presence, 'nodes' | 'node'> {
  readonly #region: string
  readonly #sessions = new Shelf<LiveSession>()
  readonly #tunnels = new Shelf<Tunnel>()
  /** By the ids of their endpoints. */
  readonly #endpoints = new Shelf<Tunnel>()
  /** Tunnels by place; several when they are in a pool. */
  readonly #byPlace = new Map<string, Set<Tunnel>>()
  /** Tunnels with labels, including those at other planes and nodes. */
  readonly groups = new LabelGroups<LabelledTunnel>()
  readonly #elsewhere: Elsewhere
  #past = { bytesIn: 0, bytesOut: 0 }

  constructor({ region, elsewhere = nowhere }: { readonly region: string; readonly elsewhere?: Elsewhere }) {
    this.#region = region
    this.#elsewhere = elsewhere
  }

  get counts(): { readonly sessions: number; readonly tunnels: number; readonly endpoints: number } {
    return { sessions: this.#sessions.size, tunnels: this.#tunnels.size, endpoints: this.#endpoints.size }
  }

  /** Bytes carried by sessions that have ended. */
  get past(): { readonly bytesIn: number; readonly bytesOut: number } {
    return this.#past
  }

  /** Adds a session. A session with the same id is the same agent on a lost connection; it is ended first. */
  addSession(session: LiveSession): void {
    this.#sessions.get(session.id)?.end('its agent reconnected on another connection')
    this.#sessions.add(session.id, session)
    this.#elsewhere.sessionStarted(session)
  }

  /** Removes a session with all its tunnels. */
  removeSession(session: LiveSession): void {
    // Another connection may have replaced it.
    if (this.#sessions.get(session.id) === session) this.#elsewhere.sessionEnded(session)
    for (const tunnel of session.tunnels.values()) this.removeTunnel(tunnel)
    if (this.#sessions.get(session.id) === session) this.#sessions.delete(session.id)
    this.#past.bytesIn += session.bytesIn
    this.#past.bytesOut += session.bytesOut
  }

  /** Whether a session may start a tunnel with this id: no such tunnel is online, or it moves here with that session. */
  mayStart(tunnelId: string, sessionId: string): boolean {
    if (this.#tunnels.get(tunnelId)) return false
    const holder = this.#elsewhere.holderOf(tunnelId)
    return holder === undefined || holder === sessionId
  }

  addTunnel(tunnel: Tunnel): void {
    tunnel.session.tunnels.add(tunnel)
    this.#tunnels.add(tunnel.id, tunnel)
    if (tunnel.endpoint) {
      this.#endpoints.add(tunnel.endpoint.id, tunnel)
      const { place } = tunnel.endpoint
      this.#byPlace.set(place, (this.#byPlace.get(place) ?? new Set()).add(tunnel))
    }
    const listed = listedAs(tunnel)
    if (listed) this.groups.add(listed)
  }

  /** Removes a tunnel: it takes no new visitors, and present ones may go on. */
  removeTunnel(tunnel: Tunnel): void {
    if (!this.#takeOut(tunnel)) return
    this.#elsewhere.tunnelEnded(tunnel)
    tunnel.close()
  }

  /** Removes a tunnel that has moved to another data plane: others are not told, and its address is still served. */
  handOver(tunnelId: string): void {
    const tunnel = this.#tunnels.get(tunnelId)
    if (tunnel && this.#takeOut(tunnel)) tunnel.handOver()
  }

  #takeOut(tunnel: Tunnel): boolean {
    if (this.#tunnels.get(tunnel.id) !== tunnel) return false
    tunnel.session.tunnels.delete(tunnel)
    this.#tunnels.delete(tunnel.id)
    if (tunnel.endpoint) {
      this.#endpoints.delete(tunnel.endpoint.id)
      const { place } = tunnel.endpoint
      const sharing = this.#byPlace.get(place)
      sharing?.delete(tunnel)
      if (sharing?.size === 0) this.#byPlace.delete(place)
    }
    const listed = listedAs(tunnel)
    if (listed) this.groups.delete(listed)
    return true
  }

  liveSessions(): LiveSession[] {
    return [...this.#sessions.values()]
  }

  liveTunnel(id: string): Tunnel | undefined {
    return this.#tunnels.get(id)
  }

  /** The sessions that have a place: one, unless it is a pool. */
  holdersOf(place: string): LiveSession[] {
    return [...new Set([...(this.#byPlace.get(place) ?? [])].map(({ session }) => session))]
  }

  /** Dials a tunnel that is online here, and no other. */
  readonly dialHere: Dial = async (request) => {
    const tunnel = this.#tunnels.get(request.tunnelId)
    if (!tunnel) return nowhere.dial(request)
    const { version } = request
    // The visitor was let in by rules that no longer apply to this address.
    const isOld = version !== undefined && tunnel.endpoint?.open.served.version !== version
    return isOld
      ? new DialFault('offline', 'the configuration of this address has changed since the visitor was let in')
      : tunnel.session.open(tunnel, request)
  }

  /** Dials a tunnel wherever it is online. */
  readonly dial: Dial = async (request) => {
    const tunnel = this.#tunnels.get(request.tunnelId)
    if (tunnel) return tunnel.session.open(tunnel, request)
    const outcome = await this.#elsewhere.dial(request)
    // Its agent may have come here during the dial.
    return outcome instanceof DialFault && this.#tunnels.get(request.tunnelId) ? this.dialHere(request) : outcome
  }

  readonly followGroup: FollowGroup = (labels) => this.groups.follow(labels)

  async sessions(page: PresencePage): Promise<readonly PresentSession[]> {
    return this.#sessions.page(page).map(({ present }) => present)
  }

  async session(id: string): Promise<PresentSession | undefined> {
    return this.#sessions.get(id)?.present
  }

  async tunnels(page: PresencePage): Promise<readonly PresentTunnel[]> {
    return this.#tunnels.page(page).map((tunnel) => this.presentTunnel(tunnel))
  }

  async tunnel(id: string): Promise<PresentTunnel | undefined> {
    const tunnel = this.#tunnels.get(id)
    return tunnel && this.presentTunnel(tunnel)
  }

  async endpoints(page: PresencePage): Promise<readonly PresentEndpoint[]> {
    return this.#endpoints.page(page).flatMap((tunnel) => this.presentEndpoint(tunnel) ?? [])
  }

  async endpoint(id: string): Promise<PresentEndpoint | undefined> {
    const tunnel = this.#endpoints.get(id)
    return tunnel && this.presentEndpoint(tunnel)
  }

  async tunnelsWith(labels: Readonly<Record<string, string>>): Promise<readonly string[]> {
    return this.groups.find(labels).map(({ id }) => id)
  }

  async command(sessionId: string, command: AgentCommand): Promise<void> {
    const session = this.#sessions.get(sessionId)
    if (!session) throw new Refusal('NOT_FOUND', 'there is no tunnel session with this id')
    await session.command(command)
  }

  liveSession(id: string): LiveSession | undefined {
    return this.#sessions.get(id)
  }

  liveTunnels(): Tunnel[] {
    return [...this.#tunnels.values()]
  }

  presentTunnel({ id, session, startedAt, metadata, forwardsTo, endpoint, labels }: Tunnel): PresentTunnel {
    return {
      id,
      sessionId: session.id,
      startedAt: timestamp(startedAt),
      metadata,
      region: this.#region,
      forwardsTo,
      ...(endpoint && { endpoint: { id: endpoint.id, proto: endpoint.proto, publicUrl: endpoint.open.url } }),
      ...(labels && { labels }),
    }
  }

  presentEndpoint(tunnel: Tunnel): PresentEndpoint | undefined {
    const { id, startedAt, updatedAt, name, description, metadata, endpoint } = tunnel
    if (!endpoint) return undefined
    const { url, hostport, domainId, tcpAddrId } = endpoint.open
    return {
      id: endpoint.id,
      region: this.#region,
      createdAt: timestamp(startedAt),
      updatedAt: timestamp(updatedAt),
      publicUrl: url,
      proto: endpoint.proto,
      hostport,
      type: 'ephemeral',
      name,
      description,
      metadata,
      ...(domainId !== undefined && { domainId }),
      ...(tcpAddrId !== undefined && { tcpAddrId }),
      tunnelId: id,
    }
  }
}

/** The entry of a tunnel in groups; the same object each time. */
function listedAs(tunnel: Tunnel): LabelledTunnel | undefined {
  return tunnel.labels ? tunnel : tunnel.poolMember
}
