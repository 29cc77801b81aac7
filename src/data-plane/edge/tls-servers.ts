/** Terminates TLS for edges, each with a server of its own. */

import { Socket } from 'node:net'
import { createSecureContext, createServer, type Server, TLSSocket } from 'node:tls'
import { type Aged, AgeList } from '../../lib/limits/age-list.ts'
import type { PlaneContext } from '../../model/plane-context.ts'
import type { Peer, TlsDemands, TlsFacts } from '../../modules/phases.ts'
import { alertBadCertificates } from './certificate-alert.ts'
import { type ClientHello, normalServerName } from './client-hello.ts'
import type { Edge } from './compiled-edge.ts'
import type { OpenVisit } from './idle-visitors.ts'
import { wildcardAbove } from './name-index.ts'
import type { Greeted } from './public-listener.ts'
import { alert, alertRecord, closeWith } from './read-client-hello.ts'
import type { Certificates, ServerCertificate } from './served-certificates.ts'
import { type Offer, offerFor, type ServerPlan, serverOptions } from './tls-versions.ts'

/** The part of an edge that TLS needs. */
export interface TlsEdge extends Pick<Edge, 'id' | 'kind' | 'tlsKey'> {
  readonly tls: TlsDemands
  /** Exact names and wildcards; when empty, every name asked for gets its own certificate. */
  readonly names?: readonly string[]
}

export interface Secured {
  /** No byte of it has been read. */
  readonly socket: TLSSocket
  readonly facts: TlsFacts
}

/**
 * `refused`: client and server have no version, cipher, protocol or certificate in common; `detail` is OpenSSL's error.
 * `broken`: the edge's own certificates cannot be used. `crowded`: it had to make room for another.
 */
export interface HandshakeFault {
  readonly fault: 'timeout' | 'closed' | 'refused' | 'client_certificate' | 'broken' | 'crowded'
  readonly detail: string
}

export interface TlsServersOptions extends Pick<PlaneContext, 'log'>, Partial<Pick<PlaneContext, 'now'>> {
  readonly certificates: Certificates
  /**
   * The same 32 random bytes at all data planes of a node: sessions then resume at any of them. Without it, they resume
   * only where they began.
   */
  readonly ticketSecret?: Buffer | undefined
  readonly maxServers?: number
  readonly maxPending?: number
  readonly handshakeTimeoutMs?: number
}

const defaults = {
  now: Date.now,
  /** How long a handshake may take, in milliseconds. */
  handshakeTimeoutMs: 10_000,
  /** How many handshakes may be in progress; over that the oldest is closed, since an honest one takes a few round trips. */
  maxPending: 4096,
  /** How many servers are cached, at some 33 KiB each; the least recently used goes first, and is recreated in 0.4 ms. */
  maxServers: 2048,
}

/**
 * How long a server may go without a handshake before it is dropped, in milliseconds. Its tickets then become invalid.
 */
const IDLE_MS = 3_600_000

/** The same for a name that is no longer served: an agent that reconnects is back within this time. */
const GONE_MS = 60_000

/**
 * A server used less than this ago, in milliseconds, is not moved to the end while there is room. A Map that changes with every
 * visitor is rebuilt all the time.
 */
const RECENT_MS = 1000

interface Entry {
  /** Undefined when it cannot be created; remembered, so that this is tried and logged once. */
  readonly server: Server | undefined
  usedAt: number
  /** The name that was last requested. */
  name: string
}

interface LastKey {
  readonly offer: Offer
  readonly certificate: ServerCertificate
  readonly key: string
}

interface Pending extends Aged<Pending> {
  readonly socket: Socket
  readonly peer: Peer | undefined
  readonly edge: TlsEdge
  readonly serverName: string
  readonly timer: NodeJS.Timeout
  readonly done: (result: Secured | HandshakeFault) => void
}

/** The key under which a socket keeps its handshake. */
const pendingOf = Symbol('pending')

interface ShakingSocket extends Socket {
  [pendingOf]?: Pending | undefined
}

/**
 * The hello is read beforehand, so the server is picked first and the handshake is that of a plain `tls.Server`. Minimum version,
 * client authorities, certificate and ticket keys are those of one edge. A single server with `SNICallback` would let a session
 * of one edge resume on another with the client identity of the first. It would also ignore what differs between edges.
 */
export class TlsServers {
  readonly #options: TlsServersOptions & typeof defaults
  /** Least recently used first. */
  readonly #servers = new Map<string, Entry>()
  /** The key of each edge's last visitor: looking up a long string that was just built is many times slower. */
  readonly #lastKeys = new WeakMap<TlsEdge, LastKey>()
  readonly #pending = new AgeList<Pending>()

  /** Throws when this version of Node lacks something it needs, so that the server does not start. */
  constructor(options: TlsServersOptions) {
    checkSocketBelow()
    this.#options = { ...defaults, ...options }
  }

  /** How many servers are cached at the moment. */
  get size(): number {
    return this.#servers.size
  }

  /** Drops servers of names that were not used for a while and are not served: agents and edges come and go. */
  dropGone(isServed: (name: string) => boolean): void {
    const before = this.#options.now() - GONE_MS
    for (const [key, { usedAt, name }] of this.#servers) {
      if (usedAt < before && !isServed(name)) this.#servers.delete(key)
    }
    this.#options.certificates.dropGone(isServed, before)
  }

  /** Handshakes that are in progress. */
  *visits(): Generator<OpenVisit> {
    for (const pending of this.#pending) {
      const { socket, peer } = pending
      if (!peer) continue
      const idleMs = (): number | undefined =>
        this.#pending.has(pending) ? this.#options.now() - peer.startedAt : undefined
      yield { ip: peer.ip, idleMs, close: () => this.#abort(socket, 'crowded') }
    }
  }

  /** How many handshakes are in progress. */
  get pending(): number {
    return this.#pending.size
  }

  /**
   * Takes over `socket`, with all its bytes unread, and calls `done` exactly once: with the secured connection, or with
   * the reason why there is none, after closing the socket. An error thrown in `done` closes this connection and no
   * other.
   */
  handshake(
    edge: TlsEdge,
    { socket, hello, peer }: Omit<Greeted, 'peer'> & Partial<Greeted>,
    done: (result: Secured | HandshakeFault) => void,
  ): void {
    if (socket.destroyed) {
      this.#call(done, { fault: 'closed', detail: '' })
      return
    }
    const server = this.#serverFor(edge, hello)
    if (!server) {
      closeWith(socket, alertRecord(alert.internalError))
      this.#call(done, { fault: 'broken', detail: '' })
      return
    }
    const { oldest } = this.#pending
    if (oldest && this.#pending.size >= this.#options.maxPending) this.#abort(oldest.socket, 'crowded')
    const timer = setTimeout(() => this.#abort(socket, 'timeout'), this.#options.handshakeTimeoutMs)
    const { serverName } = hello
    const pending: Pending = { socket, peer, edge, serverName, timer, done, older: undefined, newer: undefined }
    this.#pending.add(pending)
    const shaking: ShakingSocket = socket
    shaking[pendingOf] = pending
    // A client that ends its side during the handshake is gone. Node then closes the socket, unless the socket may be half open.
    socket.allowHalfOpen = false
    // This way in is documented. A `TLSSocket` of our own would be as fast, but its verdict on client certificates and its errors
    // are available only inside Node.
    server.emit('connection', socket)
  }

  #abort(socket: Socket, fault: 'timeout' | 'crowded'): void {
    socket.destroy()
    this.#finish(socket, { fault, detail: '' })
  }

  #serverFor(edge: TlsEdge, hello: ClientHello): Server | undefined {
    const now = this.#options.now()
    const offer = offerFor(edge.kind, hello.alpn)
    const certificate = this.#certificateFor(edge, hello)
    if (!certificate) return undefined
    // Edges that ask for client certificates never share a server, even if all else is equal.
    const owner = edge.tls.clientAuthorities ? edge.id : ''
    const key = this.#keyOf(edge, owner, offer, certificate)
    const name = hello.serverName
    const known = this.#servers.get(key)
    if (known && Math.abs(now - known.usedAt) < RECENT_MS && 2 * this.#servers.size <= this.#options.maxServers) {
      known.name = name
      return known.server
    }
    const entry = known ?? {
      server: this.#create(edge, { key, offer, certificate, tickets: this.#tickets(edge, owner, offer, certificate) }),
      usedAt: now,
      name,
    }
    entry.usedAt = now
    entry.name = name
    this.#servers.delete(key)
    this.#servers.set(key, entry)
    this.#dropUnused(now)
    return entry.server
  }

  #keyOf(edge: TlsEdge, owner: string, offer: Offer, certificate: ServerCertificate): string {
    const last = this.#lastKeys.get(edge)
    if (last?.offer === offer && last.certificate === certificate) return last.key
    const key = `${owner} ${offer} ${certificate.id} ${edge.tlsKey}`
    // The edge of names that are not served is built for each visitor.
    if (edge.id !== '') this.#lastKeys.set(edge, { offer, certificate, key })
    return key
  }

  /** The scope is the key of the server, with the id of the certificate that all planes share. */
  #tickets(edge: TlsEdge, owner: string, offer: Offer, { sharedId }: ServerCertificate): ServerPlan['tickets'] {
    const secret = this.#options.ticketSecret
    return secret && { secret, scope: `${owner} ${offer} ${sharedId} ${edge.tlsKey}` }
  }

  #certificateFor({ id, tls, names }: TlsEdge, { serverName }: ClientHello): ServerCertificate | undefined {
    try {
      if (tls.certificate) return this.#options.certificates.identify(tls.certificate)
      return this.#options.certificates.find(serverName, { wildcard: names && wildcardAbove(serverName, names) })
    } catch (err) {
      this.#options.log.error({ edge: id, name: serverName, err }, 'no certificate can be made for a name')
      return undefined
    }
  }

  #dropUnused(now: number): void {
    for (const [key, { usedAt }] of this.#servers) {
      if (usedAt > now - IDLE_MS && this.#servers.size <= this.#options.maxServers) return
      this.#servers.delete(key)
    }
  }

  #create(edge: TlsEdge, plan: ServerPlan): Server | undefined {
    try {
      const server = createServer(serverOptions(edge.tls, plan))
      if (edge.tls.clientAuthorities) alertBadCertificates(server, (socket, bytes) => socketBelow(socket)?.write(bytes))
      server.on('secureConnection', (socket) => this.#secured(socket))
      server.on('tlsClientError', (error: NodeJS.ErrnoException, socket) => this.#failed(socket, error))
      return server
    } catch (err) {
      this.#options.log.error({ edge: edge.id, err }, 'TLS server of an edge cannot be made')
      return undefined
    }
  }

  #secured(socket: TLSSocket): void {
    const below = socketBelow(socket)
    const pending = below?.[pendingOf]
    if (!below || !pending) {
      socket.destroy()
      return
    }
    // Node closes unauthorized connections before this point; if that ever changes, they are refused here.
    const isAuthorized = !pending.edge.tls.clientAuthorities || socket.authorized
    if (!isAuthorized || !isForName(socket, pending.serverName)) {
      socket.destroy()
      this.#finish(below, { fault: 'refused', detail: 'the name or the client certificate is not the one agreed on' })
      return
    }
    below.allowHalfOpen = true
    socket.allowHalfOpen = true
    // Node reports invalid records and alerts, and then leaves the connection open.
    socket.on('error', () => socket.destroy())
    this.#finish(below, { socket, facts: new SocketFacts(socket, pending) })
  }

  #failed(socket: TLSSocket, error: NodeJS.ErrnoException): void {
    socket.destroy()
    const below = socketBelow(socket)
    if (below) this.#finish(below, faultOf(socket, error))
  }

  #finish(below: ShakingSocket, result: Secured | HandshakeFault): void {
    const pending = below[pendingOf]
    if (!pending) return
    below[pendingOf] = undefined
    this.#pending.delete(pending)
    clearTimeout(pending.timer)
    this.#call(pending.done, result)
  }

  #call(done: Pending['done'], result: Secured | HandshakeFault): void {
    try {
      done(result)
    } catch (err) {
      this.#options.log.error({ err }, 'connection handler failed')
      if ('socket' in result) result.socket.destroy()
    }
  }
}

/**
 * The name that OpenSSL read must be the one that chose the edge, in case the two parse a hello differently. OpenSSL
 * has none for a session resumed under TLS 1.2.
 */
function isForName(socket: TLSSocket, serverName: string): boolean {
  const { servername } = socket
  return servername ? normalServerName(servername) === serverName : socket.isSessionReused()
}

class SocketFacts implements TlsFacts {
  readonly serverName: string
  readonly version: string
  readonly alpn: string
  readonly isResumed: boolean
  readonly clientCertificate: TlsFacts['clientCertificate']
  readonly #socket: TLSSocket

  constructor(socket: TLSSocket, { edge, serverName }: Pending) {
    this.serverName = serverName
    this.version = socket.getProtocol() ?? ''
    this.alpn = socket.alpnProtocol || ''
    this.isResumed = socket.isSessionReused()
    this.clientCertificate = edge.tls.clientAuthorities ? socket.getPeerX509Certificate() : undefined
    this.#socket = socket
  }

  /** Few policies use it, so it is read from OpenSSL only on demand. */
  get cipher(): string {
    // Null on a closed socket, whatever the types say.
    return this.#socket.getCipher()?.name ?? ''
  }
}

function faultOf(socket: TLSSocket, error: NodeJS.ErrnoException): HandshakeFault {
  // Node sets this to a code when no authority of the edge issued the certificate; the types say `Error`.
  const authorizationError = socket.authorizationError as Error | string | null
  if (authorizationError) return { fault: 'client_certificate', detail: String(authorizationError) }
  const detail = error.code ?? error.message
  if (detail === 'ERR_SSL_PEER_DID_NOT_RETURN_A_CERTIFICATE') return { fault: 'client_certificate', detail }
  return { fault: detail.startsWith('ERR_SSL_') ? 'refused' : 'closed', detail }
}

/** A TLS socket must expose the socket below it; otherwise no handshake could be completed. */
export function checkSocketBelow(find: typeof socketBelow = socketBelow): void {
  const below = new Socket()
  const socket = new TLSSocket(below, { isServer: true, secureContext: createSecureContext() })
  const isFound = find(socket) === below
  socket.on('error', () => {}).destroy()
  below.destroy()
  if (isFound) return
  throw new Error(
    `this version of Node (${process.version}) cannot be used: TLS sockets no longer tell what they stand on (_parent)`,
  )
}

/** No public API leads from a TLS socket to the one below it; see `checkSocketBelow`. */
function socketBelow(socket: TLSSocket): ShakingSocket | undefined {
  return (socket as unknown as { readonly _parent?: ShakingSocket })._parent
}
