/** The listener of the agents: TCP and TLS up to a connection that can speak, which is nobody yet. */
import { constants } from 'node:crypto'
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer, type SecureVersion, type TLSSocket, type Server as TlsServer } from 'node:tls'
import type { Clock } from '../lib/clock.ts'
import type { ConnectionCaps } from '../lib/connection-caps.ts'
import type { Descriptors } from '../lib/descriptors.ts'
import type { Logger } from '../lib/log.ts'
import { MinuteLog } from '../lib/minute-log.ts'
import { type Peer, peerOf } from '../lib/peer.ts'
import { modernSuitesFrom } from '../lib/tls-suites.ts'
import type { MeetVisitor } from '../lib/trusted-hop.ts'
import { socketTransport, type Transport } from '../wire/transport.ts'
import { Admission, type Crowd } from './admission.ts'
import type { DoorLimits } from './limits.ts'
import { Trial } from './trial.ts'

/** What the listener shows of itself, in PEM form. */
export interface DoorCertificate {
  readonly cert: string
  readonly key: string
}

export interface AcceptorOptions {
  readonly certificate: DoorCertificate
  /** The lowest version of TLS that is spoken. */
  readonly tlsMinVersion: SecureVersion
  /** Finds out whose connection it is, where a load balancer stands in front. */
  readonly meet: MeetVisitor
  readonly caps: ConnectionCaps | undefined
  readonly limits: DoorLimits
  readonly now: Clock
  readonly log: Logger
  readonly descriptors?: Descriptors | undefined
  readonly onConnection: (transport: Transport, trial: Trial) => void
}

/** Connections that wait to be accepted while the process is busy. */
const BACKLOG = 4096

export class Acceptor {
  readonly #options: AcceptorOptions
  readonly #admission: Admission
  readonly #tcp: Server
  readonly #tls: TlsServer
  readonly #sockets = new Set<Socket>()
  readonly #trials = new Map<string, Trial>()
  /** From a load balancer that has not told yet for whom. */
  readonly #unmet = new Set<Socket>()
  readonly #crowds: MinuteLog<{ readonly peer: string; readonly reason: Crowd }>
  readonly #noisy: MinuteLog<{ readonly peer: string }>

  constructor(options: AcceptorOptions) {
    const { certificate, tlsMinVersion, limits, now, log } = options
    this.#options = options
    this.#crowds = new MinuteLog((fields, connections) => {
      log.warn({ ...fields, connections }, 'agent connections turned away')
    })
    this.#noisy = new MinuteLog((fields, failures) => log.warn({ ...fields, failures }, 'agent logins keep failing'))
    this.#admission = new Admission(limits, now)
    // Two servers, so that a connection can be turned away before TLS costs anything. No ALPN: agents send none.
    this.#tcp = createTcpServer({ noDelay: true }, (socket) => this.#accept(socket))
    this.#tls = createTlsServer(tlsOptions(certificate, tlsMinVersion))
    this.#tls.on('secureConnection', (socket) => this.#begin(socket))
    this.#tls.on('tlsClientError', (error, socket) => {
      this.#trials.get(pathOf(socket))?.failed(`no TLS handshake: ${error.message}`, { isFault: false })
      socket.destroy()
    })
  }

  /** Of connections that have not proved who they are: how many there are, had to make room, and failed. */
  get numbers(): Pick<Admission, 'unproven' | 'turnedAway' | 'failures'> {
    const { unproven, turnedAway, failures } = this.#admission
    return { unproven, turnedAway, failures }
  }

  /** All connections, whoever they are. */
  get connections(): number {
    return this.#sockets.size
  }

  async listen({ host, port }: { readonly host: string; readonly port: number }): Promise<AddressInfo> {
    await new Promise<void>((resolve, reject) => {
      this.#tcp.once('error', reject)
      this.#tcp.listen({ host, port, backlog: BACKLOG }, () => {
        this.#tcp.off('error', reject)
        // Such as too many open files: the next connection may fare better.
        this.#tcp.on('error', (error) => {
          const { descriptors, log } = this.#options
          if (descriptors) descriptors.failed(error, `${host}:${port}`)
          else log.error({ error }, 'agent listener failed')
        })
        resolve()
      })
    })
    return this.#tcp.address() as AddressInfo // a server on a host and port has an address of this form
  }

  /** Shows another certificate from the next handshake on. */
  use(certificate: DoorCertificate): void {
    this.#tls.setSecureContext(tlsOptions(certificate, this.#options.tlsMinVersion))
  }

  /** Accepts nobody more, and drops whoever has not proved who it is. */
  stop(): void {
    this.#tcp.close()
    for (const trial of [...this.#trials.values()]) trial.drop()
    for (const socket of this.#unmet) socket.destroy()
    this.#crowds.close()
    this.#noisy.close()
  }

  /** Resolves when the last connection is closed. */
  async closed(): Promise<void> {
    await Promise.all([...this.#sockets].map((socket) => new Promise((resolve) => socket.once('close', resolve))))
  }

  #accept(socket: Socket): void {
    socket.on('error', () => {})
    if (this.#options.descriptors?.admits(socket, 'agents') === false) return
    const peer = peerOf(socket, this.#options.now())
    // Without an address it is gone already.
    if (!peer || this.#options.caps?.accept(socket) === false) {
      socket.destroy()
      return
    }
    this.#sockets.add(socket)
    this.#unmet.add(socket)
    socket.once('close', () => {
      this.#sockets.delete(socket)
      this.#unmet.delete(socket)
    })
    this.#options.meet(socket, peer, (agent) => {
      this.#unmet.delete(socket)
      if (agent && this.#isTooMany(socket, agent)) socket.destroy()
      else if (agent) this.#try(socket, agent)
      else {
        socket.destroy()
        this.#options.log.debug({ peer: peer.ip }, 'a trusted proxy did not say whose connection it is')
      }
    })
  }

  /** D68. Handshakes too: one begins here for each connection. */
  #isTooMany(socket: Socket, { ip }: Peer): boolean {
    const { caps } = this.#options
    return caps !== undefined && !(caps.admit(socket, ip) && caps.shake(ip))
  }

  #try(socket: Socket, peer: Peer): void {
    const { limits, log } = this.#options
    const path = pathOf(socket)
    const trial = new Trial({
      socket,
      peer,
      admission: this.#admission,
      limitMs: limits.authenticationMs,
      lateRefusalMs: limits.lateRefusalMs,
      log,
      onNoisy: (ip) => this.#noisy.note({ peer: ip }),
      onOver: () => this.#trials.delete(path),
    })
    this.#trials.set(path, trial)
    const reason = this.#admission.enter(trial)
    if (reason !== undefined) this.#crowds.note({ peer: peer.ip, reason })
    this.#tls.emit('connection', socket)
  }

  #begin(socket: TLSSocket): void {
    const trial = this.#trials.get(pathOf(socket))
    if (trial) this.#options.onConnection(socketTransport(socket), trial)
    else socket.destroy()
  }
}

/** As good as the longer key for all that is known, and a quarter faster; agents that do not offer it get another. */
const FIRST_CIPHER = 'TLS_AES_128_GCM_SHA256'

function tlsOptions({ cert, key }: DoorCertificate, minVersion: SecureVersion) {
  const ciphers = modernSuitesFrom(FIRST_CIPHER)
  // Each renegotiation would cost us a handshake and the peer next to nothing.
  return { cert, key, minVersion, ciphers, secureOptions: constants.SSL_OP_NO_RENEGOTIATION } as const
}

/** What a socket and the TLS over it have in common: both ends of the connection. */
function pathOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`
}
