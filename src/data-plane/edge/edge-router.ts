/** Finds the edge of an accepted connection, and passes the connection on. */
import type { Socket } from 'node:net'
import { socketStream } from '../../lib/bytes/socket-stream.ts'
import { type Aged, AgeList } from '../../lib/limits/age-list.ts'
import { MinuteLog } from '../../lib/log/minute-log.ts'
import type { VisitorErrorCode } from '../../model/visitor-errors.ts'
import type { ConnectionVerdict, Peer, TlsFacts } from '../../modules/phases.ts'
import { type Challenges, showCertificate } from './acme-challenges.ts'
import { type BrokenPhases, brokenCode, type Edge, firstVerdict } from './compiled-edge.ts'
import type { HttpFrontOptions } from './http-front.ts'
import type { OpenVisit } from './idle-visitors.ts'
import { refusedNow } from './judge-again.ts'
import type { Greeted } from './public-listener.ts'
import { type ConnectionRecord, type Relaying, relayConnection } from './relay-connection.ts'
import type { CertificatePair } from './served-certificates.ts'
import type { TlsEdge, TlsServers } from './tls-servers.ts'
import { CompileWait } from './wait-for-compile.ts'

/** A connection that carries HTTP. */
export interface HttpVisit {
  readonly socket: Socket
  readonly peer: Peer
  /** Undefined on the plain listener. */
  readonly tls: TlsFacts | undefined
  /** The edge of the name in the handshake; undefined on the plain listener, and for a name that is not served. */
  readonly edge: Edge | undefined
}

interface EdgeRouterOptions extends Pick<HttpFrontOptions, 'edges' | 'counts' | 'departed' | 'lookUp' | 'log'> {
  readonly tls: TlsServers
  readonly serveHttp: (visit: HttpVisit) => void
  /** Whether a TLS handshake with this address may begin; by default always. */
  readonly mayShake?: (ip: string) => boolean
  /** How long a connection of a TCP or TLS edge may be idle, in milliseconds. */
  readonly idleMs?: number
  /** Challenges of certificate authorities; left out when no certificates are ordered. */
  readonly challenges?: Pick<Challenges, 'forHandshake'>
  /** One line for each connection of a TCP or TLS edge. */
  readonly onRecord: (record: ConnectionRecord) => void
  /** the certificate for a name that is not served; none is issued for names that strangers make up. */
  readonly defaultCertificate: (name: string) => CertificatePair
}

/** How long a connection may be idle by default, in milliseconds. */
const IDLE_MS = 5 * 60_000

interface Carried extends Aged<Carried>, Pick<HttpVisit, 'socket' | 'peer' | 'tls'> {
  readonly serverName: string | undefined
  /** The edge as it was when it let the connection in, now or again. */
  edge: Edge
}

export class EdgeRouter {
  readonly #options: EdgeRouterOptions
  /** Connections of TCP and TLS edges, by edge: they are ended some time after the edge is removed. */
  readonly #carried = new Map<string, AgeList<Carried>>()
  /** Connections of removed edges. */
  readonly #retired = new Set<AgeList<Carried>>()
  readonly #held = new CompileWait()
  /** Whether an address is admitted to any edge; asked again of those who come in later than they came. */
  #isAdmitted: (peer: Peer) => boolean = () => true
  readonly #broken: BrokenPhases
  #idleMs: number

  constructor(options: EdgeRouterOptions) {
    this.#options = options
    this.#idleMs = options.idleMs ?? IDLE_MS
    this.#broken = new MinuteLog((fields, visits) =>
      options.log.error({ ...fields, visits }, 'module of an edge failed'),
    )
  }

  /** How many connections of TCP and TLS edges are open. */
  get carried(): number {
    let sum = 0
    for (const sockets of this.#all) sum += sockets.size
    return sum
  }

  /** Connections of TCP and TLS edges. */
  get sockets(): Socket[] {
    return this.#all.flatMap((all) => [...all].map(({ socket }) => socket))
  }

  /** The same, of which none gives way to another visitor. */
  *visits(): Generator<OpenVisit> {
    for (const { socket, peer } of this.#all.flatMap((all) => [...all])) {
      yield { ip: peer.ip, idleMs: () => undefined, close: () => socket.destroy() }
    }
  }

  get #all(): AgeList<Carried>[] {
    return [...this.#carried.values(), ...this.#retired]
  }

  /** Sets how long connections may be idle from now on, in milliseconds. */
  useIdleMs(idleMs: number): void {
    this.#idleMs = idleMs
  }

  /** A connection to the port of a TCP edge. */
  onPort = (socket: Socket, port: number, peer: Peer): void => {
    const edge = this.#options.edges.onPort(port)
    if (edge?.starting) this.#hold(socket, peer, edge.starting, () => this.onPort(socket, port, peer))
    else if (!edge) socket.destroy()
    else if (this.#admits(socket, edge, peer, undefined)) {
      this.#carry(socket, { edge, peer, serverName: undefined, passthroughTls: false }, undefined)
    }
  }

  /** A connection to the plain listener. */
  onPlain = (socket: Socket, peer: Peer): void => {
    this.#options.serveHttp({ socket, peer, tls: undefined, edge: undefined })
  }

  /** A connection to the TLS listener, whose hello is known. */
  onGreeted = (greeted: Greeted, visitor = { hasWaited: false }): void => {
    const { socket, hello, peer } = greeted
    const { edges, tls, serveHttp, defaultCertificate, challenges } = this.#options
    const shown = challenges?.forHandshake(hello)
    if (shown) {
      if (this.#mayShake(socket, peer)) showCertificate(socket, shown)
      return
    }
    const pending = this.#options.lookUp?.('secure', hello.serverName, visitor, peer.ip)
    const isBusy = pending === 'busy'
    if (pending && !isBusy) {
      this.#hold(socket, peer, pending, () => this.onGreeted(greeted, { hasWaited: true }))
      return
    }
    // When nobody knows, its request waits once more, and is told so: a wildcard here may be another's service.
    const edge = isBusy ? undefined : edges.find(hello.serverName)
    if (!edge) {
      if (!this.#mayShake(socket, peer)) return
      const certificate = defaultCertificate(hello.serverName)
      const unserved = { id: '', kind: 'https', tls: { certificate }, tlsKey: '' } as const
      tls.handshake(unserved, greeted, (secured) => {
        if ('socket' in secured) serveHttp({ socket: secured.socket, peer, tls: secured.facts, edge: undefined })
      })
      return
    }
    if (edge.starting) {
      this.#hold(socket, peer, edge.starting, () => this.onGreeted(greeted, visitor))
      return
    }
    // addresses are checked before a handshake costs anything.
    if (!this.#admits(socket, edge, peer, hello.serverName)) return
    if (edge.tls === null) {
      this.#carry(socket, { edge, peer, serverName: hello.serverName, passthroughTls: true }, undefined)
      return
    }
    if (!this.#mayShake(socket, peer)) return
    // Checked just above.
    tls.handshake(edge as TlsEdge, greeted, (secured) => {
      if (!('socket' in secured)) {
        this.#options.log.debug({ edge: edge.id, peer: peer.ip, ...secured }, 'TLS handshake failed')
        this.#options.counts.of(edge.id).refused++
        return
      }
      this.#secured(secured.socket, secured.facts, edge, peer)
    })
  }

  /**
   * Call it when an edge is removed. The result ends its remaining connections, but none of a later edge with its id.
   */
  retire(edgeId: string): () => void {
    const left = this.#carried.get(edgeId)
    if (!left) return () => {}
    this.#carried.delete(edgeId)
    this.#retired.add(left)
    return () => {
      this.#retired.delete(left)
      for (const { socket } of [...left]) socket.destroy()
    }
  }

  /** Ends connections of these edges that they no longer let in. */
  judgeAgain(edgeIds: ReadonlySet<string>): void {
    for (const id of edgeIds) {
      const edge = this.#options.edges.served(id)
      for (const carried of edge ? [...(this.#carried.get(id) ?? [])] : []) {
        if (!edge || refusedNow(edge, carried.edge, carried, this.#broken)) carried.socket.destroy()
        else carried.edge = edge
      }
    }
  }

  /** Ends connections of addresses that are no longer admitted to any edge. */
  dropUnadmitted(admits: (peer: Peer) => boolean): void {
    this.#isAdmitted = admits
    for (const { socket, peer } of this.#all.flatMap((all) => [...all])) if (!admits(peer)) socket.destroy()
  }

  /** Closes all remaining connections. */
  cut(): void {
    this.#held.cut()
    for (const socket of this.sockets) socket.destroy()
  }

  /** Logs how often modules failed since the last line about them. */
  close(): void {
    this.#broken.close()
  }

  #hold(socket: Socket, peer: Peer, ready: Promise<void>, letIn: () => void): void {
    this.#held.hold(socket, peer.ip, ready, () => {
      if (this.#isAdmitted(peer)) letIn()
      else socket.destroy()
    })
  }

  /** Closes a connection whose handshake would exceed the limit (D68). */
  #mayShake(socket: Socket, { ip }: Peer): boolean {
    const { mayShake } = this.#options
    if (mayShake === undefined || mayShake(ip)) return true
    socket.destroy()
    return false
  }

  /** Whether a visitor with this address may connect; if not, it is refused. */
  #admits(socket: Socket, edge: Edge, peer: Peer, serverName: string | undefined): boolean {
    const reached = { edgeId: edge.id, serverName }
    const verdict = brokenCode(edge) ?? firstVerdict(edge, edge.accept, (accept) => accept(peer, reached), this.#broken)
    if (verdict) this.#refuse(socket, edge, peer, serverName, verdict)
    return verdict === undefined
  }

  #secured(socket: Socket, facts: TlsFacts, edge: Edge, peer: Peer): void {
    const reached = { edgeId: edge.id, serverName: facts.serverName }
    const ask = (handshake: Edge['handshake'][number]): ConnectionVerdict => handshake(facts, peer, reached)
    const verdict = firstVerdict(edge, edge.handshake, ask, this.#broken)
    if (verdict) this.#refuse(socket, edge, peer, facts.serverName, verdict)
    else if (edge.kind === 'tls') this.#carrySecured(socket, facts, edge, peer)
    else this.#options.serveHttp({ socket, peer, tls: facts, edge })
  }

  #carrySecured(socket: Socket, tls: TlsFacts, before: Edge, peer: Peer): void {
    const { serverName } = tls
    const { edges } = this.#options
    // The edge may have gone or changed during the handshake.
    if (!edges.has(before.id) || !this.#isAdmitted(peer)) {
      socket.on('error', () => {}).destroy()
      return
    }
    const edge = edges.served(before.id) ?? before
    const verdict = refusedNow(edge, before, { peer, tls, serverName }, this.#broken)
    if (verdict) this.#refuse(socket, edge, peer, serverName, verdict)
    else this.#carry(socket, { edge, peer, serverName, passthroughTls: false }, tls)
  }

  #carry(socket: Socket, about: Omit<Relaying, 'idleMs' | 'onDone'>, tls: TlsFacts | undefined): void {
    const { edge } = about
    const count = this.#options.counts.of(edge.id)
    count.connections++
    count.open++
    const { peer, serverName } = about
    const forget = this.#remember({ socket, peer, tls, serverName, edge, older: undefined, newer: undefined })
    const onDone = (record: ConnectionRecord): void => {
      forget()
      this.#options.counts.closed(count)
      count.bytesIn += record.bytesIn
      count.bytesOut += record.bytesOut
      if (record.fault !== undefined && record.fault !== 'CUT') count.refused++
      this.#options.onRecord(record)
    }
    relayConnection(socketStream(socket), { ...about, idleMs: this.#idleMs, onDone }).catch((error: unknown) => {
      this.#options.log.error({ err: error, edge: edge.id }, 'connection to an edge failed')
      socket.destroy()
      forget()
      this.#options.counts.closed(count)
    })
  }

  #refuse(socket: Socket, edge: Edge, peer: Peer, serverName: string | undefined, fault: VisitorErrorCode): void {
    socket.on('error', () => {})
    socket.destroy()
    this.#options.counts.of(edge.id).refused++
    this.#options.onRecord({ edge: edge.id, peer, serverName, bytesIn: 0, bytesOut: 0, target: undefined, fault })
  }

  #remember(carried: Carried): () => void {
    const { socket } = carried
    const { id: edgeId } = carried.edge
    const kept = this.#carried.get(edgeId) ?? new AgeList<Carried>()
    if (kept.size === 0) this.#carried.set(edgeId, kept)
    kept.add(carried)
    // After a visitor has ended its side, what the visitor sent is still needed, and the visitor may wait for an answer.
    const unwatch = this.#options.departed.watch(socket, { mayHalfClose: () => true })
    return () => {
      unwatch()
      kept.delete(carried)
      if (kept.size === 0 && this.#carried.get(edgeId) === kept) this.#carried.delete(edgeId)
    }
  }
}
