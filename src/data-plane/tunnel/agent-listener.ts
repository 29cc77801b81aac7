/** The door for agents: listens, and lets in agents that have a credential. */
import type { AddressInfo } from 'node:net'
import type { SecureVersion } from 'node:tls'
import type { Clock } from '../../lib/clock.ts'
import type { Descriptors } from '../../lib/files/descriptors.ts'
import type { IdSource } from '../../lib/ids.ts'
import type { Logger } from '../../lib/log/create-log.ts'
import type { ConnectionCaps } from '../../lib/net/connection-caps.ts'
import type { ListenOn } from '../../lib/net/listen-on.ts'
import { type MeetVisitor, meetAdmitted, meetVisitors } from '../../lib/net/trusted-hop.ts'
import { Acceptor, type ListenerCertificate } from './acceptor.ts'
import { AgentConnection } from './agent-connection.ts'
import type { Credentials } from './interfaces.ts'
import type { AgentNodes, ListenerContext } from './listener-context.ts'
import type { Online } from './online-tunnels.ts'
import type { Seal } from './sealed.ts'
import { type ListenerLimits, listenerLimits } from './tunnel-limits.ts'

export interface AgentListenerOptions {
  readonly online: Online
  readonly certificate: ListenerCertificate
  /** The certificate for the name that an agent asks for, if not the listener's own. */
  readonly certificateFor?: ((name: string) => ListenerCertificate | undefined) | undefined
  /** The lowest TLS version that agents may use; 1.2 by default. */
  readonly tlsMinVersion?: SecureVersion
  /** Finds the source of a connection behind a load balancer; by default, the peer itself. */
  readonly meet?: MeetVisitor
  /** Limits on connections; none by default. */
  readonly caps?: ConnectionCaps
  readonly credentials: Credentials
  /** Seals cookies, which must survive a restart. */
  readonly seal: Seal
  readonly ids: IdSource
  readonly now: Clock
  readonly log: Logger
  readonly descriptors?: Descriptors | undefined
  /** The version of this server. */
  readonly version: string
  readonly limits?: Partial<ListenerLimits>
  /** This data plane, and how many there are; by default it is the only one. */
  readonly planeId?: string
  readonly planeCount?: number
  /** This node among others; undefined for a node on its own. */
  readonly nodes?: AgentNodes | undefined
  /** Whether the IP restriction of agents admits an address; by default it admits all. */
  readonly admits?: ((peer: { readonly ip: string }) => boolean) | undefined
}

export class AgentListener {
  readonly #acceptor: Acceptor

  constructor({
    certificate,
    certificateFor,
    tlsMinVersion = 'TLSv1.2',
    meet = meetVisitors([]),
    caps,
    limits,
    descriptors,
    planeId = '',
    planeCount = 1,
    ...given
  }: AgentListenerOptions) {
    const context: ListenerContext = {
      ...given,
      planeId,
      planeCount,
      limits: { ...listenerLimits, ...limits },
    }
    this.#acceptor = new Acceptor({
      certificate,
      certificateFor,
      tlsMinVersion,
      meet: given.admits ? meetAdmitted(meet, given.admits) : meet,
      caps,
      limits: context.limits,
      now: given.now,
      log: given.log,
      descriptors,
      onConnection: (transport, trial) => {
        new AgentConnection({ transport, peer: trial.peer, outcome: trial, door: context })
      },
    })
  }

  listen(on: ListenOn): Promise<AddressInfo> {
    return this.#acceptor.listen(on)
  }

  /** Uses another certificate and minimum TLS version from the next connection on. */
  useCertificate(certificate: ListenerCertificate, tlsMinVersion: SecureVersion): void {
    this.#acceptor.use(certificate, tlsMinVersion)
  }

  /** Numbers for metrics. */
  get numbers() {
    return this.#acceptor.numbers
  }

  /** Accepts no more connections. */
  stop(): void {
    this.#acceptor.stop()
  }

  /** Resolves when all connections are closed; sessions must be ended separately. */
  closed(): Promise<void> {
    return this.#acceptor.closed()
  }
}
