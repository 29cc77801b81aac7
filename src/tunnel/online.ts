/** Who is online, through whichever door: sessions and their tunnels, and who may have which address. */
import type { Clock } from '../lib/clock.ts'
import type { IdSource } from '../lib/ids.ts'
import type { Logger } from '../lib/log/log.ts'
import { type Binding, type Bound, bind } from './bind.ts'
import type { LabelIds } from './label-ids.ts'
import { startLabelTunnel } from './labels.ts'
import type { LiveSession, Tunnel } from './live.ts'
import type { RandomBytes } from './names.ts'
import type { BindRefusal, CurrentCredentials, Endpoints } from './ports.ts'
import { Registry } from './registry.ts'
import type { Seal } from './sealed.ts'
import { StoppedTunnels } from './stopped-tunnels.ts'
import { type AgentPortRange, AgentTcpPorts } from './tcp-ports.ts'
import type { BindRequest, LabelRequest } from './tunnel-request.ts'
import { WatchedRequests } from './watched-requests.ts'

export interface OnlineOptions {
  readonly credentials: CurrentCredentials
  readonly endpoints: Endpoints
  /** Seals tokens, which must survive a restart. */
  readonly seal: Seal
  readonly ids: IdSource
  readonly now: Clock
  readonly random: RandomBytes
  readonly log: Logger
  /** Shown in sessions, tunnels and endpoints. */
  readonly region: string
  /** The domain of random names, and the host in URLs of TCP endpoints. */
  readonly domain: string
  readonly tcpPorts: AgentPortRange
  /** The ports shown in public URLs; asked at each bind, since a port may be known only after listening. */
  readonly publicPorts: () => { readonly http: number; readonly https: number }
}

export class Online {
  readonly registry: Registry
  /** Requests, as reported by the edge. */
  readonly requests = new WatchedRequests()
  readonly region: string
  readonly domain: string
  readonly #log: Logger
  readonly #binding: Binding
  readonly #stopped = new StoppedTunnels()

  constructor({ region, tcpPorts, ...given }: OnlineOptions) {
    this.registry = new Registry({ region })
    this.region = region
    this.domain = given.domain
    this.#log = given.log
    this.#binding = {
      ...given,
      registry: this.registry,
      tcpPorts: new AgentTcpPorts(tcpPorts, given.random),
      stopped: this.#stopped,
    }
  }

  /** Gives a session an address and serves it, or says why not. */
  async bind(session: LiveSession, request: BindRequest): Promise<Bound | BindRefusal> {
    const bound = await bind(session, request, this.#binding)
    if ('tunnel' in bound) this.#logStart(bound.tunnel, { url: bound.url })
    return bound
  }

  /** Starts a tunnel with labels, for tunnel groups, or says why not. */
  async startLabels(session: LiveSession, request: LabelRequest, labelIds: LabelIds): Promise<Tunnel | BindRefusal> {
    const tunnel = await startLabelTunnel(session, request, labelIds, this.#binding)
    if ('session' in tunnel) this.#logStart(tunnel, { labels: tunnel.labels })
    return tunnel
  }

  /** A session ends one of its own tunnels. */
  unbind(tunnel: Tunnel): void {
    this.registry.removeTunnel(tunnel)
    this.#log.info({ session: tunnel.session.id, tunnel: tunnel.id }, 'tunnel stopped')
  }

  /** Ends a tunnel and tells its agent why, if possible; false when it is not online. */
  stopTunnel(tunnelId: string, why: { readonly message: string; readonly ngrok: number }): boolean {
    const tunnel = this.registry.liveTunnel(tunnelId)
    if (!tunnel) return false
    // Some agents miss this after they reconnected; so nobody is sent to the tunnel, and it may not come back.
    this.#stopped.add(tunnelId)
    this.registry.removeTunnel(tunnel)
    tunnel.session.tellStopped(tunnel, why)
    this.#log.info({ session: tunnel.session.id, tunnel: tunnelId, reason: why.message }, 'tunnel stopped')
    return true
  }

  /** D64: ends sessions from addresses that a changed restriction no longer admits. */
  dropUnadmitted(admits: (peer: { readonly ip: string }) => boolean): void {
    for (const session of this.registry.liveSessions()) {
      if (!admits({ ip: session.present.ip })) session.end('an IP restriction no longer admits its address')
    }
  }

  /** The ids of the credentials that started a live session. */
  credentialsInUse(): ReadonlySet<string> {
    return new Set(this.registry.liveSessions().map(({ credentialId }) => credentialId))
  }

  /** D25: ends the sessions of a credential that is no longer valid. */
  endSessionsOf(credentialId: string, reason: string): void {
    for (const session of this.registry.sessionsOf(credentialId)) session.end(reason)
  }

  /** The ids of the SSH certificates that live sessions logged in with. */
  certificatesInUse(): ReadonlySet<string> {
    return new Set(this.registry.liveSessions().flatMap(({ certificateId }) => certificateId ?? []))
  }

  /** Ends the sessions of a certificate that was deleted. */
  endSessionsBy(certificateId: string, reason: string): void {
    for (const session of this.registry.liveSessions()) {
      if (session.certificateId === certificateId) session.end(reason)
    }
  }

  /** Ends every session; the doors must be closed before. */
  endAll(reason: string): void {
    for (const session of this.registry.liveSessions()) session.end(reason)
  }

  /** Numbers for metrics; bytes are those of all sessions since the start. */
  get load() {
    const totals = { connections: 0, bytesIn: this.registry.past.bytesIn, bytesOut: this.registry.past.bytesOut }
    for (const session of this.registry.liveSessions()) {
      totals.connections += session.connections
      totals.bytesIn += session.bytesIn
      totals.bytesOut += session.bytesOut
    }
    return { ...this.registry.counts, ...totals }
  }

  #logStart({ id, session }: Tunnel, fields: Readonly<Record<string, unknown>>): void {
    this.#log.info({ session: session.id, tunnel: id, ...fields }, 'tunnel started')
  }
}
