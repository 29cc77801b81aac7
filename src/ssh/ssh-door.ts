/** The SSH gateway: a door for clients that are just `ssh`, to whom the credentials are public keys. */
import './without-native.ts'
import type { AddressInfo, Socket } from 'node:net'
import ssh2, { type Header, type Incoming, type Server } from 'ssh2'
import type { Clock } from '../lib/clock.ts'
import type { Descriptors } from '../lib/files/descriptors.ts'
import type { IdSource } from '../lib/ids.ts'
import type { Logger } from '../lib/log/log.ts'
import type { ConnectionCaps } from '../lib/net/connection-caps.ts'
import type { ListenOn } from '../lib/net/listen-on.ts'
import type { Peer } from '../lib/net/peer.ts'
import { type MeetVisitor, meetAdmitted, meetVisitors } from '../lib/net/trusted-hop.ts'
import type { Secret } from '../lib/secrets/secret.ts'
import { Doorstep } from '../tunnel/doorstep.ts'
import type { Online } from '../tunnel/online.ts'
import type { Trial } from '../tunnel/trial.ts'
import { algorithms } from './algorithms.ts'
import { SshConnection } from './connection.ts'
import type { SshContext, SshCredentials } from './door-context.ts'
import { type SshLimits, sshLimits } from './limits.ts'
import { SshLink } from './link.ts'

export interface SshDoorOptions {
  readonly online: Online
  /** The key that the server shows of itself, in OpenSSH's own form. */
  readonly hostKey: Secret
  readonly credentials: SshCredentials
  /** Finds out whose connection it is, where a load balancer stands in front; whoever connects, by default. */
  readonly meet?: MeetVisitor
  /** How much it takes on; without limit, by default. */
  readonly caps?: ConnectionCaps
  readonly ids: IdSource
  readonly now: Clock
  readonly log: Logger
  readonly descriptors?: Descriptors | undefined
  readonly limits?: Partial<SshLimits>
  /** Whether the IP restriction of agents lets an address in; everybody, by default. */
  readonly admits?: ((peer: { readonly ip: string }) => boolean) | undefined
}

export class SshDoor {
  readonly #doorstep: Doorstep
  readonly #server: Server
  readonly #context: SshContext
  readonly #trials = new WeakMap<Socket, { readonly trial: Trial; readonly peer: Peer }>()

  constructor({ hostKey, meet = meetVisitors([]), caps, descriptors, limits, ...given }: SshDoorOptions) {
    this.#context = { ...given, limits: { ...sshLimits, ...limits } }
    const { admits, now, log } = given
    this.#doorstep = new Doorstep({
      meet: admits ? meetAdmitted(meet, admits) : meet,
      caps,
      limits: this.#context.limits,
      now,
      log,
      descriptors,
      onTrial: (socket, trial, peer) => {
        this.#trials.set(socket, { trial, peer })
        this.#server.injectSocket(socket)
      },
    })
    this.#server = new ssh2.Server({
      hostKeys: [hostKey.reveal()],
      // Nothing of the version: it helps those alone who look for old ones.
      ident: 'Postern',
      algorithms,
      keepaliveInterval: this.#context.limits.keepAliveMs,
      keepaliveCountMax: this.#context.limits.missedKeepAlives,
    })
    // Told once a client has said hello; before that there is nothing to serve, and the trial has the time.
    this.#server.on('connection', (client: Incoming, { header }: { header: Header }) => this.#begin(client, header))
    this.#server.on('error', (error: Error) => log.error({ error }, 'SSH listener failed'))
  }

  listen(on: ListenOn): Promise<AddressInfo> {
    return this.#doorstep.listen(on)
  }

  /** Numbers for metrics. */
  get numbers() {
    return this.#doorstep.numbers
  }

  /** Accepts nobody more. */
  stop(): void {
    this.#doorstep.stop()
  }

  /** Resolves when the connections of all are closed; whoever is online must be told to go. */
  closed(): Promise<void> {
    return this.#doorstep.closed()
  }

  #begin(client: Incoming, { versions: { software } }: Header): void {
    const link = new SshLink(client, { software, limits: this.#context.limits })
    const found = this.#trials.get(client._sock)
    if (found) new SshConnection({ link, ...found, door: this.#context })
    else client._sock.destroy()
  }
}
