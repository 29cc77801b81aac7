/** The listener of the agents: TCP and TLS up to a connection that can speak, which is nobody yet. */
import { constants } from 'node:crypto'
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer, type SecureVersion, type TLSSocket, type Server as TlsServer } from 'node:tls'
import type { Clock } from '../lib/clock.ts'
import { plainAddress } from '../lib/ip-rules.ts'
import type { Logger } from '../lib/log.ts'
import { modernSuitesFrom } from '../lib/tls-suites.ts'
import { socketTransport, type Transport } from '../wire/transport.ts'
import { Admission, type Bar } from './admission.ts'
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
  readonly limits: DoorLimits
  readonly now: Clock
  readonly log: Logger
  readonly onConnection: (transport: Transport, trial: Trial) => void
}

/** Connections that wait to be accepted while the process is busy. */
const BACKLOG = 4096

/** That many are turned away is told once in this time at most, in milliseconds. */
const CROWD_LOG_MS = 10_000

export class Acceptor {
  readonly #options: AcceptorOptions
  readonly #admission: Admission
  readonly #tcp: Server
  readonly #tls: TlsServer
  readonly #sockets = new Set<Socket>()
  readonly #trials = new Map<string, Trial>()
  #turnedAway = 0
  #crowdLoggedAt = Number.NEGATIVE_INFINITY

  constructor(options: AcceptorOptions) {
    const { certificate, tlsMinVersion, limits, now } = options
    this.#options = options
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

  /** Connections that have not proved yet who they are. */
  get unproven(): number {
    return this.#admission.unproven
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
        this.#tcp.on('error', (error) => this.#options.log.error({ error }, 'agent listener failed'))
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
  }

  /** Resolves when the last connection is closed. */
  async closed(): Promise<void> {
    await Promise.all([...this.#sockets].map((socket) => new Promise((resolve) => socket.once('close', resolve))))
  }

  #accept(socket: Socket): void {
    socket.on('error', () => {})
    const { limits, log } = this.#options
    const peer = { ip: plainAddress(socket.remoteAddress ?? ''), port: socket.remotePort ?? 0 }
    // Without an address it is gone already.
    const bar = peer.ip === '' ? 'gone' : this.#admission.enter(peer.ip)
    if (bar !== undefined) {
      socket.destroy()
      if (bar !== 'gone') this.#noteCrowd(peer.ip, bar)
      return
    }
    const path = pathOf(socket)
    const onOver = (): boolean => this.#trials.delete(path)
    const { authenticationMs: limitMs } = limits
    this.#trials.set(path, new Trial({ socket, peer, admission: this.#admission, limitMs, log, onOver }))
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
    this.#tls.emit('connection', socket)
  }

  #begin(socket: TLSSocket): void {
    const trial = this.#trials.get(pathOf(socket))
    if (trial) this.#options.onConnection(socketTransport(socket), trial)
    else socket.destroy()
  }

  /** A flood is told by its size, not by its drops. */
  #noteCrowd(ip: string, reason: Bar): void {
    const { now, log } = this.#options
    this.#turnedAway++
    if (now() - this.#crowdLoggedAt < CROWD_LOG_MS) return
    this.#crowdLoggedAt = now()
    log.warn({ peer: ip, reason, connections: this.#turnedAway }, 'agent connections turned away')
    this.#turnedAway = 0
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
