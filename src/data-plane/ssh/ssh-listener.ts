/** The SSH gateway: the listener for plain `ssh` clients, whose credentials are public keys. */

import type { Socket } from 'node:net'
import type { Header, Incoming, Server } from 'ssh2'
import type { Peer } from '../../lib/net/peer.ts'
import type { Secret } from '../../lib/secrets/secret.ts'
import type { PlaneContext } from '../../model/plane-context.ts'
import type { PendingLogin } from '../tunnel/pending-login.ts'
import { UnauthenticatedConnections } from '../tunnel/unauthenticated.ts'
import { algorithms } from './algorithms.ts'
import { SshConnection } from './ssh-connection.ts'
import type { SshContext } from './ssh-context.ts'
import { loadLibrary } from './ssh-library.ts'
import { type SshLimits, sshLimits } from './ssh-limits.ts'
import { SshLink } from './ssh-link.ts'

export interface SshListenerOptions
  extends Omit<SshContext, 'limits'>,
    Pick<PlaneContext, 'meet' | 'caps' | 'descriptors'> {
  /** The private host key of the server, in OpenSSH's own format. */
  readonly hostKey: Secret
  readonly limits?: Partial<SshLimits>
}

export class SshListener extends UnauthenticatedConnections {
  readonly #hostKey: Secret
  /** Made when the first client comes. */
  #server: Server | undefined
  readonly #context: SshContext
  readonly #trials = new WeakMap<Socket, { readonly trial: PendingLogin; readonly peer: Peer }>()

  constructor({ hostKey, limits, ...given }: SshListenerOptions) {
    const context = { ...given, limits: { ...sshLimits, ...limits } }
    super(context)
    this.#hostKey = hostKey
    this.#context = context
  }

  protected begin(socket: Socket, trial: PendingLogin, peer: Peer): void {
    this.#trials.set(socket, { trial, peer })
    this.#server ??= this.#makeServer()
    this.#server.injectSocket(socket)
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
    server.on('connection', (client: Incoming, { header }: { header: Header }) => this.#greeted(client, header))
    server.on('error', (error: Error) => log.error({ error }, 'SSH listener failed'))
    return server
  }

  #greeted(client: Incoming, { versions: { software } }: Header): void {
    const link = new SshLink(client, { software, limits: this.#context.limits })
    const found = this.#trials.get(client._sock)
    if (found) new SshConnection({ link, ...found, context: this.#context })
    else client._sock.destroy()
  }
}
