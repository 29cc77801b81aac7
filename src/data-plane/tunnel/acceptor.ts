/** The listener for agents: accepts TCP and TLS connections that are not authenticated yet. */
import { constants } from 'node:crypto'
import type { Socket } from 'node:net'
import {
  createSecureContext,
  createServer,
  type SecureContext,
  type SecureVersion,
  type Server,
  type TLSSocket,
} from 'node:tls'
import { modernSuites } from '../../lib/x509/tls-suites.ts'
import { socketTransport, type Transport } from '../../link/wire/transport.ts'
import type { PendingLogin } from './pending-login.ts'
import { UnauthenticatedConnections, type UnauthenticatedOptions } from './unauthenticated.ts'

/** Called without a context, it uses the listener's own certificate. */
type ChooseContext = (error: Error | null, context?: SecureContext) => void

/** The certificate and key of the listener, in PEM. */
export interface ListenerCertificate {
  readonly cert: string
  readonly key: string
}

export interface AcceptorOptions extends UnauthenticatedOptions {
  readonly certificate: ListenerCertificate
  /** The certificate for the name that an agent asks for, if not the listener's own; an unchanged one is the same object. */
  readonly certificateFor?: ((name: string) => ListenerCertificate | undefined) | undefined
  /** The lowest TLS version accepted. */
  readonly tlsMinVersion: SecureVersion
  readonly onConnection: (transport: Transport, trial: PendingLogin) => void
}

export class Acceptor extends UnauthenticatedConnections {
  readonly #options: AcceptorOptions
  readonly #tls: Server
  readonly #trials = new Map<string, PendingLogin>()
  #tlsMinVersion: SecureVersion
  /** Made once for each certificate. */
  #contexts = new WeakMap<ListenerCertificate, SecureContext>()

  constructor(options: AcceptorOptions) {
    super(options)
    this.#options = options
    this.#tlsMinVersion = options.tlsMinVersion
    // A server of its own for TLS, so that a connection can be refused before TLS costs anything. No ALPN: agents send none.
    this.#tls = createServer({
      ...tlsOptions(options.certificate, options.tlsMinVersion),
      ...(options.certificateFor && {
        SNICallback: (name: string, done: ChooseContext) => done(null, this.#contextFor(name)),
      }),
    })
    this.#tls.on('secureConnection', (socket) => this.#shaken(socket))
    this.#tls.on('tlsClientError', (error, socket) => {
      this.#trials.get(pathOf(socket))?.failed(`no TLS handshake: ${error.message}`, { isFault: false })
      socket.destroy()
    })
  }

  /** Uses another certificate and minimum TLS version from the next handshake on. */
  useCertificate(certificate: ListenerCertificate, tlsMinVersion: SecureVersion): void {
    this.#tls.setSecureContext(tlsOptions(certificate, tlsMinVersion))
    if (tlsMinVersion !== this.#tlsMinVersion) this.#contexts = new WeakMap()
    this.#tlsMinVersion = tlsMinVersion
  }

  /** Undefined means the listener's own certificate. */
  #contextFor(name: string): SecureContext | undefined {
    const certificate = this.#options.certificateFor?.(name.toLowerCase())
    if (!certificate) return undefined
    const known = this.#contexts.get(certificate)
    if (known) return known
    try {
      const context = createSecureContext(tlsOptions(certificate, this.#tlsMinVersion))
      this.#contexts.set(certificate, context)
      return context
    } catch (err) {
      this.#options.log.error({ err, name }, 'cannot load a certificate for agents; using that of the listener')
      return undefined
    }
  }

  protected begin(socket: Socket, trial: PendingLogin): void {
    const path = pathOf(socket)
    this.#trials.set(path, trial)
    trial.whenOver(() => this.#trials.delete(path))
    this.#tls.emit('connection', socket)
  }

  #shaken(socket: TLSSocket): void {
    const trial = this.#trials.get(pathOf(socket))
    if (trial) this.#options.onConnection(socketTransport(socket), trial)
    else socket.destroy()
  }
}

function tlsOptions({ cert, key }: ListenerCertificate, minVersion: SecureVersion) {
  // Each renegotiation would cost the server a handshake and the peer next to nothing.
  const secureOptions = constants.SSL_OP_NO_RENEGOTIATION | constants.SSL_OP_PRIORITIZE_CHACHA
  return { cert, key, minVersion, ciphers: modernSuites, secureOptions } as const
}

/** The addresses of both ends, which a socket and the TLS socket over it have in common. */
export function pathOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`
}
