/** The door agents use: it listens, lets in who has a credential, and keeps the registry of who is online. */
import type { AddressInfo } from 'node:net'
import type { SecureVersion } from 'node:tls'
import type { Clock } from '../lib/clock.ts'
import type { ConnectionCaps } from '../lib/connection-caps.ts'
import type { Descriptors } from '../lib/descriptors.ts'
import type { IdSource } from '../lib/ids.ts'
import type { Logger } from '../lib/log.ts'
import { type MeetVisitor, meetAdmitted, meetVisitors } from '../lib/trusted-hop.ts'
import { Acceptor, type DoorCertificate } from './acceptor.ts'
import { AgentConnection } from './connection.ts'
import type { DoorContext } from './door-context.ts'
import { FormerLabels } from './label-ids.ts'
import { type DoorLimits, doorLimits } from './limits.ts'
import type { RandomBytes } from './names.ts'
import type { Credentials, Endpoints } from './ports.ts'
import { Registry } from './registry.ts'
import type { Seal } from './sealed.ts'
import { StoppedTunnels } from './stopped-tunnels.ts'
import { type PortRange, TcpPorts } from './tcp-ports.ts'

export interface AgentDoorOptions {
  readonly certificate: DoorCertificate
  /** The lowest version of TLS that agents may speak; 1.2 unless it is said. */
  readonly tlsMinVersion?: SecureVersion
  /** Finds out whose connection it is, where a load balancer stands in front; whoever connects, by default. */
  readonly meet?: MeetVisitor
  /** How much it takes on; without limit, by default. */
  readonly caps?: ConnectionCaps
  readonly credentials: Credentials
  readonly endpoints: Endpoints
  /** For cookies and tokens, which must outlive this process. */
  readonly seal: Seal
  readonly ids: IdSource
  readonly now: Clock
  readonly random: RandomBytes
  readonly log: Logger
  readonly descriptors?: Descriptors | undefined
  /** Shown in sessions, tunnels and endpoints. */
  readonly region: string
  /** Random names stand under it; TCP endpoints have it in their URL. */
  readonly domain: string
  /** Of this server. */
  readonly version: string
  readonly tcpPorts: PortRange
  /** What stands in public URLs; asked at every bind, since a port may be known only after listening. */
  readonly publicPorts: () => { readonly http: number; readonly https: number }
  readonly limits?: Partial<DoorLimits>
  /** Whether the IP restriction of agents lets an address in; everybody, by default. */
  readonly admits?: (peer: { readonly ip: string }) => boolean
}

/** How often a drain looks whether the last visitor is gone, in milliseconds. */
const DRAIN_LOOK_MS = 50

export class AgentDoor {
  readonly registry: Registry
  readonly #acceptor: Acceptor
  readonly #log: Logger
  readonly #context: DoorContext
  readonly #stopped = new StoppedTunnels()

  constructor({
    certificate,
    tlsMinVersion = 'TLSv1.2',
    meet = meetVisitors([]),
    caps,
    tcpPorts,
    limits,
    descriptors,
    ...given
  }: AgentDoorOptions) {
    const { region, random, now, log } = given
    this.#log = log
    this.registry = new Registry({ region })
    const context: DoorContext = {
      ...given,
      registry: this.registry,
      tcpPorts: new TcpPorts(tcpPorts, random),
      stopped: this.#stopped,
      formerLabels: new FormerLabels(),
      limits: { ...doorLimits, ...limits },
    }
    this.#context = context
    this.#acceptor = new Acceptor({
      certificate,
      tlsMinVersion,
      meet: given.admits ? meetAdmitted(meet, given.admits) : meet,
      caps,
      limits: context.limits,
      now,
      log,
      descriptors,
      onConnection: (transport, trial) => {
        new AgentConnection({ transport, peer: trial.peer, outcome: trial, door: context })
      },
    })
  }

  listen(address: { readonly host: string; readonly port: number }): Promise<AddressInfo> {
    return this.#acceptor.listen(address)
  }

  /** Shows another certificate from the next connection on. */
  useCertificate(certificate: DoorCertificate): void {
    this.#acceptor.use(certificate)
  }

  /** D64: a restriction that changed ends the sessions of addresses that it no longer admits. */
  dropUnadmitted(): void {
    const { admits } = this.#context
    if (!admits) return
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

  /** Numbers for metrics; bytes are those of all sessions since the start. */
  get load() {
    const { sessions, tunnels, endpoints } = this.registry.counts
    const totals = { connections: 0, bytesIn: this.registry.past.bytesIn, bytesOut: this.registry.past.bytesOut }
    for (const session of this.registry.liveSessions()) {
      totals.connections += session.connections
      totals.bytesIn += session.bytesIn
      totals.bytesOut += session.bytesOut
    }
    return { sessions, tunnels, endpoints, ...this.#acceptor.numbers, ...totals }
  }

  /** Accepts nobody more, gives visitors `drainMs` to finish, then ends every session; resolves when all is closed. */
  async close(drainMs = 0): Promise<void> {
    this.#acceptor.stop()
    const until = performance.now() + drainMs
    while (performance.now() < until && this.load.connections > 0) {
      await new Promise((resolve) => setTimeout(resolve, DRAIN_LOOK_MS))
    }
    for (const session of this.registry.liveSessions()) session.end('the server is stopping')
    await this.#acceptor.closed()
  }
}
