/** For tests: the HTTP plane on real sockets, with edges that the test makes up, services behind it and visitors for it. */
import { once } from 'node:events'
import { createServer as createHttpServer, type RequestListener } from 'node:http'
import { createServer as createHttp2Server, type ServerHttp2Stream, type Settings } from 'node:http2'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import type { TestContext } from 'node:test'
import { createServer as createTlsServer, type TLSSocket } from 'node:tls'
import type { ByteStream } from '../../../lib/bytes/byte-stream.ts'
import { socketStream } from '../../../lib/bytes/socket-stream.ts'
import { createLog } from '../../../lib/log/create-log.ts'
import { Authority, createAuthority } from '../../../lib/x509/certificate-authority.ts'
import { DialFault } from '../../../model/dial.ts'
import type { Peer, Phases, TlsFacts } from '../../../modules/phases.ts'
import type { AccessRecord } from '../../requests/access-record.ts'
import { BodyMemory } from '../body-memory.ts'
import type { Edge, Route } from '../compiled-edge.ts'
import { Sweep } from '../deadlines.ts'
import type { Backend, DialTarget, Target } from '../dial.ts'
import { Http1Connection } from '../http1/server-connection.ts'
import { Http1Upstream } from '../http1/upstream-connection.ts'
import { Http2Upstream } from '../http2/http2-upstream.ts'
import { Http2Connection } from '../http2/server-connection.ts'
import { errorPages } from '../pages/error-page.ts'
import { HttpProxy, type HttpProxyOptions } from '../proxy/http-proxy.ts'
import { reservedPaths } from '../reserved-paths.ts'
import { routeOfEveryPath, routeTable } from '../route-table.ts'
import { UpstreamPool, type UpstreamPoolOptions } from '../upstream-pool.ts'

export interface TestRoute extends Partial<Route> {
  readonly match?: string
  readonly isExact?: boolean
  readonly reserves?: Phases['reserves']
}

export interface TestEdge {
  readonly id?: string
  readonly kind?: Edge['kind']
  readonly names: readonly string[]
  readonly routes?: readonly TestRoute[]
  readonly isEndpoint?: boolean
  readonly broken?: string
  readonly tlsKey?: string
  readonly tls?: Edge['tls']
  readonly accept?: Edge['accept']
  readonly handshake?: Edge['handshake']
}

export function testEdge({ id, kind = 'https', names, routes = [], ...rest }: TestEdge): Edge {
  const made = routes.map(({ match = '/', isExact = false, reserves = [] as const, ...given }) => {
    const matched = { matchType: isExact ? ('exact_path' as const) : ('path_prefix' as const), match }
    return { matched, route: testRoute({ id: match, ...given }), phases: [{ reserves }] }
  })
  const compiled = made.map(({ matched, route }) => [matched, route] as const)
  return {
    id: id ?? `edghts_${names[0]}`,
    kind,
    isEndpoint: false,
    ownerId: undefined,
    names,
    ports: [],
    broken: undefined,
    starting: undefined,
    tls: {},
    tlsKey: '',
    accept: [],
    handshake: [],
    backend: undefined,
    route: routeTable(compiled),
    everyPath: routeOfEveryPath(compiled),
    reserved: reservedPaths(made),
    ...rest,
  }
}

function testRoute(route: Partial<Route>): Route {
  return {
    id: '/',
    broken: undefined,
    readsPath: false,
    accept: [],
    request: [],
    upstream: [],
    response: [],
    removedFromRequest: new Set(),
    removedFromResponse: new Set(),
    done: [],
    bridge: undefined,
    backend: undefined,
    ...route,
  }
}

export function backendOf(...targets: Target[]): Backend {
  return { targets: () => targets, isOnline: targets.length > 0, release() {} }
}

/** A service on a free port that counts how often it is dialled. */
export interface Service {
  readonly target: DialTarget
  readonly backend: Backend
  readonly port: number
  /** How often it was dialled. */
  dials: number
  /** Connections that are open. */
  readonly sockets: Set<Socket>
}

async function listen(t: TestContext, server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  return (server.address() as AddressInfo).port // it listens on a port
}

async function serviceOn(t: TestContext, server: Server, options: Partial<DialTarget> = {}): Promise<Service> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket)).on('error', () => {})
  })
  t.after(() => {
    for (const socket of sockets) socket.destroy()
  })
  const port = await listen(t, server)
  const target: DialTarget = {
    kind: 'dial',
    key: `service ${port}`,
    httpVersion: 1,
    proxyHeader: 0,
    open: () => {
      service.dials++
      return dialLocal(port)
    },
    ...options,
  }
  const service = { target, backend: backendOf(target), port, dials: 0, sockets }
  return service
}

function dialLocal(port: number): ReturnType<DialTarget['open']> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true })
    socket.once('connect', () => resolve(socketStream(socket, { outlivesFailedWrite: true })))
    socket.once('error', (cause) => resolve(new DialFault('refused', 'nobody listens', { cause })))
  })
}

/** A service that speaks HTTP/1.1, with Node's own server. */
export async function httpService(
  t: TestContext,
  handler: RequestListener,
  options?: Partial<DialTarget>,
): Promise<Service> {
  const server = createHttpServer({ keepAliveTimeout: 60_000 }, handler)
  server.on('clientError', (_error, socket) => socket.destroy())
  return serviceOn(t, server, options)
}

/** A service that speaks HTTP/2 without TLS, with Node's own server. */
export async function http2Service(
  t: TestContext,
  handler: (stream: ServerHttp2Stream, headers: Record<string, string | string[] | undefined>) => void,
  { settings, ...options }: Partial<DialTarget> & { settings?: Settings } = {},
): Promise<Service> {
  const server = createHttp2Server(settings ? { settings } : {})
  server.on('stream', (stream, headers) => {
    stream.on('error', () => {})
    handler(stream, headers)
  })
  server.on('sessionError', () => {})
  return serviceOn(t, server, { httpVersion: 2, ...options })
}

/** A service of raw bytes. */
export function rawService(
  t: TestContext,
  serve: (socket: Socket) => void,
  options?: Partial<DialTarget>,
): Promise<Service> {
  return serviceOn(t, createServer({ allowHalfOpen: true }, serve), options)
}

/** A target that cannot be dialled. */
export function offlineTarget(reason: DialFault['reason'] = 'offline'): DialTarget {
  const open = async (): Promise<DialFault> => new DialFault(reason, reason)
  return { kind: 'dial', key: reason, httpVersion: 1, proxyHeader: 0, open }
}

/** A target whose connections close before they can be used. */
export function closingTarget(): DialTarget {
  const open = async (): Promise<ByteStream> => {
    const bytes = new PassThrough()
    const stream = socketStream(bytes.destroy())
    await once(bytes, 'close')
    return stream
  }
  return { kind: 'dial', key: 'closing', httpVersion: 1, proxyHeader: 0, open }
}

const authority = createAuthority()
const issuer = new Authority(authority.certPem, authority.keyPem)
export const caPem = authority.certPem

interface PlaneOptions extends Partial<HttpProxyOptions> {
  readonly poolOptions?: Partial<UpstreamPoolOptions>
}

/** The plane itself: a TLS listener and a plain one. */
export class Plane {
  readonly edges = new Map<string, Edge>()
  readonly plainEdges = new Map<string, Edge>()
  readonly records: AccessRecord[] = []
  readonly logged: string[] = []
  readonly sweep = new Sweep({ everyMs: 20 })
  readonly bodyMemory = new BodyMemory({ bytes: 64 * 1024 * 1024 })
  readonly pool: UpstreamPool
  readonly proxy: HttpProxy
  readonly connections = new Set<Http1Connection | Http2Connection>()
  /** Changes the identity of a connection. */
  asTls: (facts: TlsFacts) => Partial<{ edge: Edge | undefined; tlsKey: string }> = () => ({})
  httpsPort = 0
  httpPort = 0
  #waiting: (() => void)[] = []

  constructor({ poolOptions, ...options }: PlaneOptions = {}) {
    const log = createLog({ format: 'json', destination: { write: (line) => this.logged.push(line) } })
    this.pool = new UpstreamPool({
      http1: (stream) => new Http1Upstream({ stream, sweep: this.sweep }),
      http2: (stream) => new Http2Upstream({ stream, sweep: this.sweep }),
      ...poolOptions,
    })
    this.proxy = new HttpProxy({
      edges: {
        find: (host) => this.edges.get(host),
        findPlain: (host) => this.plainEdges.get(host),
      },
      pool: this.pool,
      sweep: this.sweep,
      bodyMemory: this.bodyMemory,
      log,
      publicHttpsPort: () => this.httpsPort,
      onRequest: (record) => {
        this.records.push(record)
        for (const wake of this.#waiting.splice(0)) wake()
      },
      ...options,
    })
  }

  static async start(t: TestContext, edges: readonly Edge[], options?: PlaneOptions): Promise<Plane> {
    const plane = new Plane(options)
    for (const edge of edges)
      for (const name of edge.names) (edge.kind === 'http' ? plane.plainEdges : plane.edges).set(name, edge)
    const { cert, key } = issuer.issue(['plane.test'])
    const secure = createTlsServer({ cert, key, ALPNProtocols: ['h2', 'http/1.1'], allowHalfOpen: true })
    secure.on('secureConnection', (socket) => plane.#secured(socket))
    secure.on('tlsClientError', () => {})
    plane.httpsPort = await listen(t, secure)
    plane.httpPort = await listen(
      t,
      createServer({ allowHalfOpen: true, noDelay: true }, (socket) => plane.#serve(socket, undefined)),
    )
    t.after(() => {
      for (const connection of plane.connections) connection.reset()
      plane.pool.close()
    })
    return plane
  }

  /** Resolves when `count` requests are over. */
  async recorded(count = 1): Promise<AccessRecord[]> {
    while (this.records.length < count) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    return this.records
  }

  /** The one request that was made. */
  async record(): Promise<AccessRecord> {
    const [record] = await this.recorded()
    if (!record) throw new Error('there is none')
    return record
  }

  #secured(socket: TLSSocket): void {
    // Node has `false` for no name.
    const serverName = typeof socket.servername === 'string' ? socket.servername : ''
    this.#serve(socket, {
      serverName,
      version: socket.getProtocol() ?? '',
      cipher: socket.getCipher().name,
      alpn: socket.alpnProtocol || '',
      isResumed: socket.isSessionReused(),
      clientCertificate: undefined,
    })
  }

  #serve(socket: Socket, tls: TlsFacts | undefined): void {
    const peer: Peer = {
      ip: socket.remoteAddress ?? '',
      port: socket.remotePort ?? 0,
      serverIp: socket.localAddress ?? '',
      serverPort: socket.localPort ?? 0,
      startedAt: Date.now(),
    }
    const edge = tls && this.edges.get(tls.serverName)
    const made = { edge, tlsKey: edge?.tlsKey ?? '', ...(tls && this.asTls(tls)) }
    const visit = { peer, tls, ...made, current: undefined, asked: undefined }
    const common = {
      onBad: errorPages().plain,
      onClosed: () => this.connections.delete(connection),
      onBroken: (cause: unknown) => this.logged.push(`broken: ${String(cause)}`),
    }
    const connection =
      tls?.alpn === 'h2'
        ? new Http2Connection({
            ...common,
            socket,
            sweep: this.sweep,
            onExchange: (exchange) => this.proxy.handle(exchange, visit),
          })
        : new Http1Connection({
            ...common,
            stream: socketStream(socket),
            serverName: tls?.serverName,
            sweep: this.sweep,
            onExchange: (exchange) => this.proxy.handle(exchange, visit),
          })
    this.connections.add(connection)
  }
}

/** An edge of the name `a.test` with one route to `service`. */
export function edgeOf(service: Service, phases: { response?: NonNullable<Phases['response']>[] } = {}) {
  return testEdge({ names: ['a.test'], routes: [{ backend: service.backend, ...phases }] })
}

/** The same over the plain listener, whose connections a test can break. */
export function plainEdgeOf(service: Service, phases: { response?: NonNullable<Phases['response']>[] } = {}) {
  return testEdge({ names: ['a.test'], kind: 'http', routes: [{ backend: service.backend, ...phases }] })
}
