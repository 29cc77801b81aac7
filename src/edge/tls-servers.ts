/**
 * Ends TLS for edges, each with a server of its own. The hello is known before, so the server is picked first and the
 * handshake is then that of a plain `tls.Server`: lowest version, client authorities, certificate and ticket keys are
 * those of the one edge. One server that picks by `SNICallback` would let a session of one edge resume on another with
 * the client identity it had there, and would ignore what differs between them.
 *
 * Sockets are fed in with `emit('connection')`, which is documented, and not wrapped in a `TLSSocket` of our own: that
 * would be as fast, but its verdict on client certificates and its errors can be had from inside Node alone.
 */
import { Socket } from 'node:net'
import { createSecureContext, createServer, type Server, TLSSocket } from 'node:tls'
import type { Clock } from '../lib/clock.ts'
import type { Logger } from '../lib/log/log.ts'
import type { TlsDemands, TlsFacts } from '../modules/phases.ts'
import { alertBadCertificates } from './certificate-alert.ts'
import type { Certificates, ServerCertificate } from './certificates.ts'
import { type ClientHello, normalServerName } from './client-hello.ts'
import type { Edge } from './edge.ts'
import { wildcardAbove } from './names.ts'
import { alert, alertRecord, closeWith } from './peek.ts'
import { offerFor, type ServerPlan, serverOptions } from './tls-options.ts'

/** What of an edge matters to TLS. */
export interface TlsEdge extends Pick<Edge, 'id' | 'kind' | 'tlsKey'> {
  readonly tls: TlsDemands
  /** Exact names and wildcards; without any, each name that is asked for is one of its own. */
  readonly names?: readonly string[]
}

export interface Secured {
  /** Nothing of it was read. */
  readonly socket: TLSSocket
  readonly facts: TlsFacts
}

/**
 * `refused`: the two ends have no version, cipher, protocol or certificate in common, and `detail` says which in the
 * words of OpenSSL. `broken`: the edge's own certificates cannot be used. `crowded`: it had to make room for another.
 */
export interface HandshakeFault {
  readonly fault: 'timeout' | 'closed' | 'refused' | 'client_certificate' | 'broken' | 'crowded'
  readonly detail: string
}

export interface TlsServersOptions {
  readonly certificates: Certificates
  readonly log: Logger
  readonly now?: Clock
  readonly maxServers?: number
  readonly maxPending?: number
  readonly handshakeTimeoutMs?: number
}

/** How long a handshake may take, in milliseconds. */
const HANDSHAKE_TIMEOUT_MS = 10_000

/** How many handshakes may be under way; beyond it the oldest goes, since honest ones take a few ways through the network. */
const MAX_PENDING = 4096

/** How many servers are kept, at some 33 KiB each; the one not used longest goes first, and is made anew in 0.4 ms. */
const MAX_SERVERS = 2048

/** After how long without a handshake a server is dropped, in milliseconds. Its tickets are void then. */
const IDLE_MS = 3_600_000

/** The same for a name that nobody serves any more: an agent that connects anew is back by then. */
const GONE_MS = 60_000

interface Entry {
  /** Undefined when it cannot be made; remembered, so that it is tried and told once. */
  readonly server: Server | undefined
  usedAt: number
  /** The name of an edge that was asked for last. */
  name: string
}

interface Pending {
  readonly edge: TlsEdge
  readonly serverName: string
  readonly timer: NodeJS.Timeout
  readonly done: (result: Secured | HandshakeFault) => void
}

export class TlsServers {
  readonly #certificates: Certificates
  readonly #log: Logger
  readonly #now: Clock
  readonly #maxServers: number
  readonly #maxPending: number
  readonly #timeoutMs: number
  /** The one least recently used first. */
  readonly #servers = new Map<string, Entry>()
  /** Handshakes by the socket below. */
  readonly #pending = new Map<Socket, Pending>()

  /** Throws where the version of Node lacks what it needs, so that the server does not start. */
  constructor(options: TlsServersOptions) {
    const { certificates, log, now = Date.now } = options
    checkSocketBelow()
    this.#certificates = certificates
    this.#log = log
    this.#now = now
    this.#maxServers = options.maxServers ?? MAX_SERVERS
    this.#maxPending = options.maxPending ?? MAX_PENDING
    this.#timeoutMs = options.handshakeTimeoutMs ?? HANDSHAKE_TIMEOUT_MS
  }

  /** How many servers are kept at the moment. */
  get size(): number {
    return this.#servers.size
  }

  /** Drops those of names that were not asked for in a while and that nobody serves any more: agents and edges come and go. */
  dropGone(isServed: (name: string) => boolean): void {
    const before = this.#now() - GONE_MS
    for (const [key, { usedAt, name }] of this.#servers) {
      if (usedAt < before && !isServed(name)) this.#servers.delete(key)
    }
    this.#certificates.dropGone(isServed, before)
  }

  /** How many handshakes are under way. */
  get pending(): number {
    return this.#pending.size
  }

  /**
   * Takes over `socket`, which a peek has left with all its bytes, and calls `done` exactly once: with the connection,
   * or with why there is none, the socket being closed then. What `done` throws ends this connection and nothing else.
   */
  handshake(
    edge: TlsEdge,
    { socket, hello }: { readonly socket: Socket; readonly hello: ClientHello },
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
    if (this.#pending.size >= this.#maxPending) {
      const [oldest = socket] = this.#pending.keys()
      this.#abort(oldest, 'crowded')
    }
    const timer = setTimeout(() => this.#abort(socket, 'timeout'), this.#timeoutMs)
    this.#pending.set(socket, { edge, serverName: hello.serverName, timer, done })
    // Who ends before the handshake does has gone; Node closes it then, as it would not if half-open were allowed.
    socket.allowHalfOpen = false
    server.emit('connection', socket)
  }

  #abort(socket: Socket, fault: 'timeout' | 'crowded'): void {
    socket.destroy()
    this.#finish(socket, { fault, detail: '' })
  }

  #serverFor(edge: TlsEdge, hello: ClientHello): Server | undefined {
    const now = this.#now()
    const offer = offerFor(edge.kind, hello.alpn)
    const certificate = this.#certificateFor(edge, hello)
    if (!certificate) return undefined
    // Edges that ask for client certificates share with nobody, whatever else is equal.
    const owner = edge.tls.clientAuthorities ? edge.id : ''
    const key = `${owner} ${offer} ${certificate.id} ${edge.tlsKey}`
    const name = hello.serverName
    const known = this.#servers.get(key)
    const entry = known ?? { server: this.#create(edge, { key, offer, certificate }), usedAt: now, name }
    entry.usedAt = now
    entry.name = name
    this.#servers.delete(key)
    this.#servers.set(key, entry)
    this.#dropUnused(now)
    return entry.server
  }

  #certificateFor({ id, tls, names }: TlsEdge, { serverName }: ClientHello): ServerCertificate | undefined {
    try {
      if (tls.certificate) return this.#certificates.identify(tls.certificate)
      return this.#certificates.find(serverName, { wildcard: names && wildcardAbove(serverName, names) })
    } catch (err) {
      this.#log.error({ edge: id, name: serverName, err }, 'there is no certificate for a name')
      return undefined
    }
  }

  #dropUnused(now: number): void {
    for (const [key, { usedAt }] of this.#servers) {
      if (usedAt > now - IDLE_MS && this.#servers.size <= this.#maxServers) return
      this.#servers.delete(key)
    }
  }

  #create(edge: TlsEdge, { key, offer, certificate }: ServerPlan): Server | undefined {
    try {
      const server = createServer(serverOptions(edge.tls, { key, offer, certificate }))
      if (edge.tls.clientAuthorities) alertBadCertificates(server, (socket, bytes) => socketBelow(socket)?.write(bytes))
      server.on('secureConnection', (socket) => this.#secured(socket))
      server.on('tlsClientError', (error: NodeJS.ErrnoException, socket) => this.#failed(socket, error))
      return server
    } catch (err) {
      this.#log.error({ edge: edge.id, err }, 'TLS of an edge cannot be served')
      return undefined
    }
  }

  #secured(socket: TLSSocket): void {
    const below = socketBelow(socket)
    const pending = below && this.#pending.get(below)
    if (!below || !pending) {
      socket.destroy()
      return
    }
    // Node closes what is not authorized before it comes here; nothing may pass if that ever changes.
    const isAuthorized = !pending.edge.tls.clientAuthorities || socket.authorized
    if (!isAuthorized || !isForName(socket, pending.serverName)) {
      socket.destroy()
      this.#finish(below, { fault: 'refused', detail: 'the name or the client certificate is not the one agreed on' })
      return
    }
    below.allowHalfOpen = true
    socket.allowHalfOpen = true
    // Node tells of broken records and of alerts, and then leaves the connection open.
    socket.on('error', () => socket.destroy())
    this.#finish(below, { socket, facts: factsOf(socket, pending) })
  }

  #failed(socket: TLSSocket, error: NodeJS.ErrnoException): void {
    socket.destroy()
    const below = socketBelow(socket)
    if (below) this.#finish(below, faultOf(socket, error))
  }

  #finish(below: Socket, result: Secured | HandshakeFault): void {
    const pending = this.#pending.get(below)
    if (!pending) return
    this.#pending.delete(below)
    clearTimeout(pending.timer)
    this.#call(pending.done, result)
  }

  #call(done: Pending['done'], result: Secured | HandshakeFault): void {
    try {
      done(result)
    } catch (err) {
      this.#log.error({ err }, 'a connection could not be taken')
      if ('socket' in result) result.socket.destroy()
    }
  }
}

/**
 * The name that OpenSSL read must be the one that the edge was picked by, should the two ever read a hello differently. Of
 * a session that resumes under TLS 1.2 it keeps none.
 */
function isForName(socket: TLSSocket, serverName: string): boolean {
  const { servername } = socket
  return servername ? normalServerName(servername) === serverName : socket.isSessionReused()
}

function factsOf(socket: TLSSocket, { edge, serverName }: Pending): TlsFacts {
  return {
    serverName,
    version: socket.getProtocol() ?? '',
    // Null on a socket that is closed already, whatever its types say.
    cipher: socket.getCipher()?.name ?? '',
    alpn: socket.alpnProtocol || '',
    isResumed: socket.isSessionReused(),
    clientCertificate: edge.tls.clientAuthorities ? socket.getPeerX509Certificate() : undefined,
  }
}

function faultOf(socket: TLSSocket, error: NodeJS.ErrnoException): HandshakeFault {
  // Set by Node to a code when a certificate was shown that no authority of the edge has issued; its types say `Error`.
  const authorizationError = socket.authorizationError as Error | string | null
  if (authorizationError) return { fault: 'client_certificate', detail: String(authorizationError) }
  const detail = error.code ?? error.message
  if (detail === 'ERR_SSL_PEER_DID_NOT_RETURN_A_CERTIFICATE') return { fault: 'client_certificate', detail }
  return { fault: detail.startsWith('ERR_SSL_') ? 'refused' : 'closed', detail }
}

/** A TLS socket must lead to the one it stands on; where it does not, no handshake could ever be finished. */
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

/** Nothing public leads from a TLS socket to the one it stands on; see `checkSocketBelow`. */
function socketBelow(socket: TLSSocket): Socket | undefined {
  return (socket as unknown as { readonly _parent?: Socket })._parent
}
