/** Who is online, whichever door they came through: sessions and what they serve, and who may have which address. */
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
import { type PortRange, TcpPorts } from './tcp-ports.ts'
import type { BindRequest, LabelRequest } from './tunnel-request.ts'
import { WatchedRequests } from './watched-requests.ts'

export interface OnlineOptions {
  readonly credentials: CurrentCredentials
  readonly endpoints: Endpoints
  /** For tokens, which must outlive this process. */
  readonly seal: Seal
  readonly ids: IdSource
  readonly now: Clock
  readonly random: RandomBytes
  readonly log: Logger
  /** Shown in sessions, tunnels and endpoints. */
  readonly region: string
  /** Random names stand under it; TCP endpoints have it in their URL. */
  readonly domain: string
  readonly tcpPorts: PortRange
  /** What stands in public URLs; asked at every bind, since a port may be known only after listening. */
  readonly publicPorts: () => { readonly http: number; readonly https: number }
}

export class Online {
  readonly registry: Registry
  /** Told by whoever serves visitors. */
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
      tcpPorts: new TcpPorts(tcpPorts, given.random),
      stopped: this.#stopped,
    }
  }

  /** Gives a session an address that is served from here on, or says why not. */
  async bind(session: LiveSession, request: BindRequest): Promise<Bound | BindRefusal> {
    const bound = await bind(session, request, this.#binding)
    if ('tunnel' in bound) this.#logStart(bound.tunnel, { url: bound.url })
    return bound
  }

  /** Sends a session the visitors of tunnel groups that its labels fit, or says why not. */
  async startLabels(session: LiveSession, request: LabelRequest, labelIds: LabelIds): Promise<Tunnel | BindRefusal> {
    const tunnel = await startLabelTunnel(session, request, labelIds, this.#binding)
    if ('session' in tunnel) this.#logStart(tunnel, { labels: tunnel.labels })
    return tunnel
  }

  /** A session ends a tunnel of its own. */
  unbind(tunnel: Tunnel): void {
    this.registry.removeTunnel(tunnel)
    this.#log.info({ session: tunnel.session.id, tunnel: tunnel.id }, 'tunnel stopped')
  }

  /** Ends one tunnel and tells its agent why, where that is possible; false when it is not online. */
  stopTunnel(tunnelId: string, why: { readonly message: string; readonly ngrok: number }): boolean {
    const tunnel = this.registry.liveTunnel(tunnelId)
    if (!tunnel) return false
    // Some agents do not hear it after they reconnected; so nobody is sent there any more, and it does not come back.
    this.#stopped.add(tunnelId)
    this.registry.removeTunnel(tunnel)
    tunnel.session.tellStopped(tunnel, why)
    this.#log.info({ session: tunnel.session.id, tunnel: tunnelId, reason: why.message }, 'tunnel stopped')
    return true
  }

  /** D64: a restriction that changed ends the sessions of addresses that it no longer admits. */
  dropUnadmitted(admits: (peer: { readonly ip: string }) => boolean): void {
    for (const session of this.registry.liveSessions()) {
      if (!admits({ ip: session.present.ip })) session.end('an IP restriction no longer admits its address')
    }
  }

  /** The ids of the credentials that started a live session. */
  credentialsInUse(): ReadonlySet<string> {
    return new Set(this.registry.liveSessions().map(({ credentialId }) => credentialId))
  }

  /** D25: a credential that opens nothing any more ends the sessions that it started. */
  endSessionsOf(credentialId: string, reason: string): void {
    for (const session of this.registry.sessionsOf(credentialId)) session.end(reason)
  }

  /** The ids of the SSH certificates that live sessions were let in by. */
  certificatesInUse(): ReadonlySet<string> {
    return new Set(this.registry.liveSessions().flatMap(({ certificateId }) => certificateId ?? []))
  }

  /** A certificate that was deleted ends the sessions that it let in. */
  endSessionsBy(certificateId: string, reason: string): void {
    for (const session of this.registry.liveSessions()) {
      if (session.certificateId === certificateId) session.end(reason)
    }
  }

  /** Ends every session; the doors they came through must be closed by then. */
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
