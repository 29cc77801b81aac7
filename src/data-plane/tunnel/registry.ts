/** The sessions online at this data plane and their tunnels: the API lists them, and visitors are routed by them. */
import { timestamp } from '../../lib/clock.ts'
import { Groups } from '../../lib/multi-map.ts'
import type { Control } from '../../link/planes/control-link.ts'
import type { Attachment, OnlineSession, OnlineTunnel } from '../../link/planes/plane-calls.ts'
import { type Dial, DialFault, type FollowGroup } from '../../model/dial.ts'
import { Refusal } from '../../model/errors.ts'
import { LabelGroups, type LabelledTunnel } from '../../model/label-groups.ts'
import type { AgentCommand, PresentEndpoint, PresentTunnel } from '../../model/presence.ts'
import { noRemoteTunnels, type RemoteTunnels } from './interfaces.ts'
import type { LiveSession, Tunnel } from './session-types.ts'

interface RegistryOptions {
  readonly control: Control
  /** Shown in sessions, tunnels and endpoints. */
  readonly region: string
}

/** How long an agent waits until other planes can reach its tunnel, in milliseconds. */
const REPORT_MS = 5000

export class Registry {
  readonly region: string
  readonly #control: Control
  readonly #sessions = new Map<string, LiveSession>()
  readonly #tunnels = new Map<string, Tunnel>()
  /** Tunnels by place; several when they are in a pool. */
  readonly #byAddress = new Groups<Tunnel>()
  /** Tunnels with labels, including those at other planes and nodes. */
  readonly groups = new LabelGroups<LabelledTunnel>()
  /** Bytes carried by sessions that have ended. */
  readonly past = { bytesIn: 0, bytesOut: 0 }
  #remote = noRemoteTunnels

  constructor({ control, region }: RegistryOptions) {
    this.#control = control
    this.region = region
  }

  /** Tunnels at other data planes and nodes. */
  get remote(): RemoteTunnels {
    return this.#remote
  }

  /** From now on tunnels elsewhere are reached through `remote`, which is told what comes and goes here. */
  attach(remote: RemoteTunnels): void {
    this.#remote = remote
  }

  get counts(): { readonly sessions: number; readonly tunnels: number; readonly endpoints: number } {
    const endpoints = [...this.#tunnels.values()].filter(({ endpoint }) => endpoint).length
    return { sessions: this.#sessions.size, tunnels: this.#tunnels.size, endpoints }
  }

  /** Adds a session. A session with the same id is the same agent on a lost connection; it is ended first. */
  addSession(session: LiveSession): void {
    this.#sessions.get(session.id)?.end('its agent reconnected on another connection')
    this.#sessions.set(session.id, session)
    this.#control.tell('sessionStarted', onlineSession(session))
  }

  /** Removes a session with all its tunnels. */
  removeSession(session: LiveSession): void {
    // Another connection may have replaced it.
    if (this.#sessions.get(session.id) === session) this.#control.tell('sessionEnded', { sessionId: session.id })
    for (const tunnel of session.tunnels.values()) this.removeTunnel(tunnel)
    if (this.#sessions.get(session.id) === session) this.#sessions.delete(session.id)
    this.past.bytesIn += session.bytesIn
    this.past.bytesOut += session.bytesOut
  }

  /** Whether a session may start a tunnel with this id: no such tunnel is online, or it moves here with that session. */
  mayStart(tunnelId: string, sessionId: string): boolean {
    if (this.#tunnels.get(tunnelId)) return false
    const holder = this.#remote.holderOf(tunnelId)
    return holder === undefined || holder === sessionId
  }

  /** Adds a tunnel; resolves when other planes can reach it. */
  async startTunnel(tunnel: Tunnel): Promise<void> {
    tunnel.session.tunnels.add(tunnel)
    this.#tunnels.set(tunnel.id, tunnel)
    if (tunnel.endpoint) this.#byAddress.add(tunnel.endpoint.place, tunnel)
    const listed = listedAs(tunnel)
    if (listed) this.groups.add(listed)
    this.#remote.cameHere(tunnel.id, tunnel.endpoint?.open.served.config)
    // A control plane that is away is told when it attaches this data plane again.
    await this.#control.ask('tunnelStarted', this.#onlineTunnel(tunnel), { withinMs: REPORT_MS }).catch(() => {})
  }

  /** Its agent has changed the name, description or metadata of a tunnel. */
  tunnelChanged(tunnel: Tunnel): void {
    this.#control.tell('tunnelChanged', this.#onlineTunnel(tunnel))
  }

  /** Removes a tunnel: it takes no new visitors, and present ones may go on. */
  removeTunnel(tunnel: Tunnel): void {
    if (!this.#takeOut(tunnel)) return
    this.#remote.leftHere(tunnel)
    this.#control.tell('tunnelEnded', { tunnelId: tunnel.id })
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
    if (tunnel.endpoint) this.#byAddress.delete(tunnel.endpoint.place, tunnel)
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
    return [...new Set([...this.#byAddress.get(place)].map(({ session }) => session))]
  }

  /** Dials a tunnel that is online here, and no other. */
  readonly dialHere: Dial = async (request) => {
    const tunnel = this.#tunnels.get(request.tunnelId)
    if (!tunnel) return new DialFault('offline', 'the tunnel is not online')
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
    const outcome = await this.#remote.dial(request)
    // Its agent may have come here during the dial.
    return outcome instanceof DialFault && this.#tunnels.get(request.tunnelId) ? this.dialHere(request) : outcome
  }

  /** Follows a group wherever its tunnels are. */
  readonly followGroup: FollowGroup = (labels) => this.#remote.followGroup?.(labels) ?? this.groups.follow(labels)

  /** The session of a tunnel wherever it is online. */
  sessionOf(tunnelId: string): string | undefined {
    return this.#tunnels.get(tunnelId)?.session.id ?? this.#remote.sessionOf(tunnelId)
  }

  async command(sessionId: string, command: AgentCommand): Promise<void> {
    const session = this.#sessions.get(sessionId)
    if (!session) throw new Refusal('NOT_FOUND', 'there is no tunnel session with this id')
    await session.command(command)
  }

  liveSession(id: string): LiveSession | undefined {
    return this.#sessions.get(id)
  }

  /** All sessions and tunnels, for a control plane that attaches this data plane. */
  get online(): Pick<Attachment, 'sessions' | 'tunnels'> {
    return {
      sessions: this.liveSessions().map(onlineSession),
      tunnels: [...this.#tunnels.values()].map((tunnel) => this.#onlineTunnel(tunnel)),
    }
  }

  #onlineTunnel(tunnel: Tunnel): OnlineTunnel {
    const { startedAt, httpVersion, endpoint } = tunnel
    const present = this.#presentEndpoint(tunnel)
    return {
      tunnel: this.#presentTunnel(tunnel),
      startedAt,
      httpVersion,
      ...(endpoint && present && { endpoint: { present, place: endpoint.place, ...endpoint.open.served } }),
    }
  }

  #presentTunnel({ id, session, startedAt, metadata, forwardsTo, endpoint, labels }: Tunnel): PresentTunnel {
    return {
      id,
      sessionId: session.id,
      startedAt: timestamp(startedAt),
      metadata,
      region: this.region,
      forwardsTo,
      ...(endpoint && { endpoint: { id: endpoint.id, proto: endpoint.proto, publicUrl: endpoint.open.url } }),
      ...(labels && { labels }),
    }
  }

  #presentEndpoint(tunnel: Tunnel): PresentEndpoint | undefined {
    const { id, startedAt, updatedAt, name, description, metadata, endpoint, forwardsTo } = tunnel
    if (!endpoint) return undefined
    const isHttp = endpoint.proto === 'http' || endpoint.proto === 'https'
    const { url, hostport, domainId, tcpAddrId } = endpoint.open
    return {
      id: endpoint.id,
      region: this.region,
      createdAt: timestamp(startedAt),
      updatedAt: timestamp(updatedAt),
      publicUrl: url,
      proto: endpoint.proto,
      hostport,
      type: 'ephemeral',
      name,
      description,
      metadata,
      ...(tunnel.poolMember && { isPooled: true }),
      ...(forwardsTo !== '' && { upstreamUrl: forwardsTo }),
      ...(isHttp && { upstreamProtocol: `http${tunnel.httpVersion}` as const }),
      ...(domainId !== undefined && { domainId }),
      ...(tcpAddrId !== undefined && { tcpAddrId }),
      tunnelId: id,
    }
  }
}

function onlineSession({ present, certificateId }: LiveSession): OnlineSession {
  return { session: present, certificateId }
}

/** The entry of a tunnel in groups; the same object each time. */
function listedAs(tunnel: Tunnel): LabelledTunnel | undefined {
  return tunnel.labels ? tunnel : tunnel.poolMember
}
