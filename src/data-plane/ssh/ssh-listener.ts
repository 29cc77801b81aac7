/** The SSH gateway: the door for plain `ssh` clients, whose credentials are public keys. */
import type { AddressInfo, Socket } from 'node:net'
import type { Header, Incoming, Server } from 'ssh2'
import type { Clock } from '../../lib/clock.ts'
import type { Descriptors } from '../../lib/files/descriptors.ts'
import type { IdSource } from '../../lib/ids.ts'
import type { Logger } from '../../lib/log/create-log.ts'
import type { ConnectionCaps } from '../../lib/net/connection-caps.ts'
import type { ListenOn } from '../../lib/net/listen-on.ts'
import type { Peer } from '../../lib/net/peer.ts'
import { type MeetVisitor, meetAdmitted, meetVisitors } from '../../lib/net/trusted-hop.ts'
import type { Secret } from '../../lib/secrets/secret.ts'
import type { Online } from '../tunnel/online-tunnels.ts'
import type { PendingLogin } from '../tunnel/pending-login.ts'
import { UnauthenticatedConnections } from '../tunnel/unauthenticated.ts'
import { algorithms } from './algorithms.ts'
import { SshConnection } from './ssh-connection.ts'
import type { SshContext, SshCredentials } from './ssh-context.ts'
import { loadLibrary } from './ssh-library.ts'
import { type SshLimits, sshLimits } from './ssh-limits.ts'
import { SshLink } from './ssh-link.ts'

export interface SshListenerOptions {
  readonly online: Online
  /** The private host key of the server, in OpenSSH's own format. */
  readonly hostKey: Secret
  readonly credentials: SshCredentials
  /** Finds the client's address behind a load balancer; by default that of the connection. */
  readonly meet?: MeetVisitor
  /** Limits on connections; none by default. */
  readonly caps?: ConnectionCaps
  readonly ids: IdSource
  readonly now: Clock
  readonly log: Logger
  readonly descriptors?: Descriptors | undefined
  readonly limits?: Partial<SshLimits>
  /** Whether the IP restriction of agents admits an address; by default everybody is admitted. */
  readonly admits?: ((peer: { readonly ip: string }) => boolean) | undefined
}

export class SshListener {
  readonly #doorstep: UnauthenticatedConnections
  readonly #hostKey: Secret
  /** Made when the first client comes. */
  #server: Server | undefined
  readonly #context: SshContext
  readonly #trials = new WeakMap<Socket, { readonly trial: PendingLogin; readonly peer: Peer }>()

  constructor({ hostKey, meet = meetVisitors([]), caps, descriptors, limits, ...given }: SshListenerOptions) {
    this.#hostKey = hostKey
    this.#context = { ...given, limits: { ...sshLimits, ...limits } }
    const { admits, now, log } = given
    this.#doorstep = new UnauthenticatedConnections({
      meet: admits ? meetAdmitted(meet, admits) : meet,
      caps,
      limits: this.#context.limits,
      now,
      log,
      descriptors,
      onTrial: (socket, trial, peer) => {
        this.#trials.set(socket, { trial, peer })
        this.#server ??= this.#makeServer()
        this.#server.injectSocket(socket)
      },
    })
  }

  listen(on: ListenOn): Promise<AddressInfo> {
    return this.#doorstep.listen(on)
  }

  /** Numbers for metrics. */
  get numbers() {
    return this.#doorstep.numbers
  }

  /** Accepts no more connections. */
  stop(): void {
    this.#doorstep.stop()
  }

  /** Resolves when all connections are closed; the caller must end the sessions that are online. */
  closed(): Promise<void> {
    return this.#doorstep.closed()
  }

  #makeServer(): Server {
    const { limits, log } = this.#context
    const { Server } = loadLibrary()
    const server = new Server({
      hostKeys: [this.#hostKey.reveal()],
      // Without a version, which would only help attackers who look for old ones.
      ident: 'Postern',
      algorithms,
      keepaliveInterval: limits.keepAliveMs,
      keepaliveCountMax: limits.missedKeepAlives,
    })
    // Emitted once a client has sent its first line; until then the trial limits its time.
    server.on('connection', (client: Incoming, { header }: { header: Header }) => this.#begin(client, header))
    server.on('error', (error: Error) => log.error({ error }, 'SSH listener failed'))
    return server
  }

  #begin(client: Incoming, { versions: { software } }: Header): void {
    const link = new SshLink(client, { software, limits: this.#context.limits })
    const found = this.#trials.get(client._sock)
    if (found) new SshConnection({ link, ...found, door: this.#context })
    else client._sock.destroy()
  }
}
