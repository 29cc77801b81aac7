/** Speaks HTTP with visitors: uses the negotiated version, and hands every request to the proxy. */

import type { Socket } from 'node:net'
import type { Movable } from '../../lib/bytes/close-when-idle.ts'
import { socketStream } from '../../lib/bytes/socket-stream.ts'
import { type Aged, AgeList } from '../../lib/limits/age-list.ts'
import type { PlaneContext } from '../../model/plane-context.ts'
import type { VisitorErrorCode } from '../../model/visitor-errors.ts'
import type { AccessRecord } from '../requests/access-record.ts'
import type { Exchange } from '../requests/http-exchange.ts'
import { Sweep } from './deadlines.ts'
import type { DisconnectWatch } from './detect-disconnects.ts'
import type { HttpVisit } from './edge-router.ts'
import type { EdgeTable } from './edge-table.ts'
import { defaultLimits, type Http1Limits } from './http1/bounds.ts'
import { Http1Connection } from './http1/server-connection.ts'
import { Http1Upstream } from './http1/upstream-connection.ts'
import { Http2Upstream } from './http2/http2-upstream.ts'
import { Http2Connection } from './http2/server-connection.ts'
import type { OpenVisit } from './idle-visitors.ts'
import { type ErrorPages, errorPages } from './pages/error-page.ts'
import { HttpProxy, type HttpProxyOptions } from './proxy/http-proxy.ts'
import type { VisitorConnection } from './proxy/pick-edge.ts'
import type { EdgeCount, TrafficCount } from './traffic-count.ts'
import { UpstreamPool } from './upstream-pool.ts'

type ForProxy = 'lookUp' | 'onProxied' | 'bodyMemory' | 'pages' | 'admits' | 'captures'

export interface HttpFrontOptions extends Pick<HttpProxyOptions, ForProxy>, Pick<PlaneContext, 'log' | 'now'> {
  readonly edges: EdgeTable
  readonly counts: TrafficCount
  readonly departed: DisconnectWatch
  /** The ports shown in URLs; known once the listeners are open. */
  readonly publicPorts: { readonly https: number }
  readonly onRequest: (record: AccessRecord) => void
  /** What a visitor may send and how long it may take, over HTTP/2 too. */
  readonly limits?: Http1Limits
  /** Whether connections to a service are worth keeping for the next request. */
  readonly mayKeep?: (targetKey: string) => boolean
  /** Answers a request on the plain listener that is not for an edge; returns whether it did. */
  readonly answerFirst?: (exchange: Exchange) => boolean
  /** For connections from this address: whether one more request may begin. Undefined when there is no limit. */
  readonly requestsOf?: (ip: string) => (() => boolean) | undefined
}

const UPGRADED = 101

interface Served extends Aged<Served> {
  readonly connection: Http1Connection | Http2Connection
  readonly visitor: VisitorConnection
  readonly socket: Socket
}

export class HttpFront {
  readonly #options: HttpFrontOptions
  #limits: Http1Limits
  readonly #pages: () => ErrorPages
  readonly #onBad = (code: VisitorErrorCode) => this.#pages().plain(code)
  readonly #sweep = new Sweep()
  readonly #pool: UpstreamPool
  readonly #proxy: HttpProxy
  readonly #connections = new AgeList<Served>()
  #isDraining = false

  constructor(options: HttpFrontOptions) {
    const { edges, bodyMemory, pages = errorPages, log, now, admits, captures, lookUp, mayKeep, onProxied } = options
    const { publicPorts, limits = defaultLimits } = options
    this.#options = options
    this.#pages = pages
    this.#limits = limits
    this.#pool = new UpstreamPool({
      http1: (stream) => new Http1Upstream({ stream, sweep: this.#sweep }),
      http2: (stream) => new Http2Upstream({ stream, sweep: this.#sweep }),
      ...(mayKeep && { mayKeep }),
    })
    this.#proxy = new HttpProxy({
      ...{
        edges,
        lookUp,
        pool: this.#pool,
        sweep: this.#sweep,
        bodyMemory,
        pages,
        log,
        now,
        admits,
        captures,
        onProxied,
      },
      publicHttpsPort: () => publicPorts.https,
      onRequest: (record) => this.#count(record),
      idleMs: serviceIdleMs(limits),
      uploadMs: limits.idleMs,
    })
  }

  /** Switches to other limits, for connections and requests that come later. */
  use(limits: Http1Limits): void {
    this.#limits = limits
    this.#proxy.useIdleMs(serviceIdleMs(limits), limits.idleMs)
  }

  /** Connections that are open. */
  get open(): number {
    return this.#connections.size
  }

  /** The open connections, with their traffic. */
  get connections(): Movable[] {
    return [...this.#connections].map(({ connection, socket }) => ({
      get bytesRead() {
        return socket.bytesRead
      },
      get bytesWritten() {
        return socket.bytesWritten
      },
      get destroyed() {
        return socket.destroyed
      },
      // A reset shows the visitor that the rest of an answer is missing.
      destroy: () => connection.reset(),
    }))
  }

  /** Connections that carry requests. */
  *visits(): Generator<OpenVisit> {
    for (const served of this.#connections) {
      const { connection, socket, visitor } = served
      const isAtRest = (): boolean => !socket.destroyed && socket.writableLength === 0
      yield {
        ip: visitor.peer.ip,
        idleMs: () => (isAtRest() ? connection.idleMs : undefined),
        close: () => {
          // What was answered in this turn is still sent; over HTTP/2 the visitor is told, if that can be written at once.
          connection.drain()
          if (!(connection instanceof Http2Connection)) return socket.destroy()
          connection.reset()
          setImmediate(() => socket.destroy())
        },
      }
    }
  }

  /** Takes over a connection of a visitor. */
  serve({ socket, peer, tls, edge }: HttpVisit): void {
    const { counts, departed, log } = this.#options
    const count = counts.of(edge?.id ?? '')
    count.connections++
    count.open++
    const visitor: VisitorConnection = {
      peer,
      tls,
      edge,
      tlsKey: edge?.tlsKey ?? '',
      current: edge,
      // Nearly all requests are for the name of the handshake, which is known to be a valid host.
      asked: tls && { authority: tls.serverName, host: tls.serverName },
      replay: undefined,
    }
    const mayAsk = this.#options.requestsOf?.(peer.ip)
    const answerFirst = tls === undefined ? this.#options.answerFirst : undefined
    const onExchange = (exchange: Exchange): void => {
      if (mayAsk?.() === false) refuse(exchange, count, this.#pages())
      else if (answerFirst?.(exchange) !== true) this.#proxy.handle(exchange, visitor)
    }
    const onBroken = (err: unknown): void => log.error({ err, edge: edge?.id }, 'HTTP connection failed')
    let unwatch: (() => void) | undefined
    let served: Served | undefined
    const onClosed = (): void => {
      unwatch?.()
      counts.closed(count)
      if (served) this.#connections.delete(served)
    }
    const limits = this.#limits
    const common = { sweep: this.#sweep, limits, onExchange, onBad: this.#onBad, onClosed, onBroken }
    let connection: Served['connection']
    if (tls?.alpn === 'h2') {
      const http2 = new Http2Connection({ ...common, socket })
      connection = http2
      // While Node writes to a session, it stops reading without saying so: the sign is that no bytes move.
      let seen = -1
      const isPaused = (): boolean => {
        const moved = socket.bytesRead + socket.bytesWritten
        const isQuiet = moved === seen
        seen = moved
        return isQuiet && http2.open > 0
      }
      unwatch = departed.watch(socket, { isPaused, mayHalfClose: () => false })
    } else {
      const http1 = new Http1Connection({ ...common, stream: socketStream(socket), serverName: tls?.serverName })
      connection = http1
      // D69: a visitor that ends its side while it waits has left. After an upgrade it may do so.
      unwatch = departed.watch(socket, { mayHalfClose: () => http1.isGone, onStalled: () => http1.readAhead() })
    }
    served = { connection, visitor, socket, older: undefined, newer: undefined }
    this.#connections.add(served)
    if (this.#isDraining) connection.drain()
  }

  /** Answers a request that did not come over a visitor's connection. */
  answer(exchange: Exchange, visitor: VisitorConnection): void {
    this.#proxy.handle(exchange, visitor)
  }

  /** Closes each connection after the requests that are under way. */
  drain(): void {
    this.#isDraining = true
    for (const { connection } of [...this.#connections]) connection.drain()
    this.#pool.close()
  }

  /** Retires the connections of a tunnel that is reached another way from now on. */
  tunnelMoved(tunnelId: string): void {
    this.#pool.retireAll(tunnelId)
  }

  /**
   * Call it when an edge is removed. The result ends its remaining connections, but none of a later edge with its id.
   */
  retire(edgeId: string): () => void {
    const left = [...this.#connections].filter(({ visitor }) =>
      [visitor.edge?.id, visitor.current?.id].includes(edgeId),
    )
    return () => {
      for (const served of left) {
        if (!this.#connections.has(served)) continue
        const { connection, visitor } = served
        const { current } = visitor
        // Requests made since then may be for another edge. Over HTTP/2 an older request may still be under way.
        const isOver = current?.id !== edgeId && !(connection instanceof Http2Connection && connection.open > 0)
        if (!isOver) connection.reset()
        // The name is not served now: the next request belongs on a new connection, and this one stops counting for the
        // edge.
        else if (current === undefined) connection.drain()
      }
    }
  }

  /** Ends requests and upgraded connections of these edges that they no longer let in; later requests are judged as they come. */
  judgeAgain(edgeIds: ReadonlySet<string>): void {
    this.#proxy.judgeAgain(edgeIds, (id) => this.#options.edges.served(id))
  }

  /** The same for addresses that are no longer admitted to any edge. */
  dropUnadmitted(): void {
    this.#proxy.dropUnadmitted()
  }

  /** Resets every connection. */
  cut(): void {
    for (const { connection } of [...this.#connections]) connection.reset()
  }

  #count(record: AccessRecord): void {
    const count = this.#options.counts.of(record.edge ?? '')
    const digit = Math.trunc(record.status / 100)
    count.requests[digit] = (count.requests[digit] ?? 0) + 1
    count.bytesIn += record.bytesIn
    count.bytesOut += record.bytesOut
    if (record.fault !== undefined) count.refused++
    // An upgraded connection must not count as a request that took hours.
    if (record.status !== 0 && record.status !== UPGRADED) {
      // The clock may have been set back.
      const ms = Math.max(0, record.durationMs)
      count.requestMs += ms
      this.#options.counts.latency.note(ms)
    }
    this.#options.onRequest(record)
  }
}

/** Services may be idle for the default time at least, however short visitors' connections may be idle. */
function serviceIdleMs({ idleMs }: Http1Limits): number {
  return Math.max(idleMs, defaultLimits.idleMs)
}

/** D68. Counted, and logged once a minute, but not written to the access log, which a flood would fill. */
function refuse(exchange: Exchange, count: EdgeCount, pages: ErrorPages): void {
  const { head, body } = pages.forRequest('SERVER_BUSY', exchange.head)
  head.headers.add('retry-after', '1')
  count.refused++
  const writer = exchange.respond(head)
  if (body.length > 0) writer.write(body)
  writer.end()
}
