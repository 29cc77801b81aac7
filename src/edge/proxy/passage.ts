/** One request on its way through the edge, from its head to its last byte, each step in its place. */
import type { ByteStream } from '../../lib/byte-stream.ts'
import { HeaderList } from '../../lib/header-list.ts'
import { relay } from '../../lib/relay.ts'
import type { VisitorErrorCode } from '../../model/visitor-errors.ts'
import type { Phases, Verdict } from '../../modules/phases.ts'
import { dialFirst } from '../dial-first.ts'
import type { Edge, Route } from '../edge.ts'
import type { BodyReader, Exchange, ResponseHead, UpstreamRequest } from '../exchange.ts'
import type { Deadline } from '../http1/sweep.ts'
import type { Backend, FixedTarget, Visit } from '../target.ts'
import { hostOf } from './authority.ts'
import { Context } from './context.ts'
import { Forwarding, type ForwardingOwner } from './forwarding.ts'
import { forwardedHeaders, stripRequest, stripResponse } from './headers.ts'
import { publicLocation } from './location.ts'
import { canonicalPath, splitTarget } from './path.ts'
import { pickEdge, type VisitorConnection } from './pick-edge.ts'
import type { ProxyTools } from './proxy-tools.ts'
import { type Given, Reply } from './reply.ts'
import { RequestBody } from './request-body.ts'
import { WatchedStream } from './watched-stream.ts'
import { acceptWebSocket } from './websocket.ts'

/** A request that has found its route. */
interface Routed {
  readonly edge: Edge
  readonly route: Route
  readonly ctx: Context
}

export class Passage implements ForwardingOwner {
  readonly #tools: ProxyTools
  readonly #exchange: Exchange
  readonly #connection: VisitorConnection
  readonly #startedAt: number
  readonly #body: RequestBody
  readonly #reply: Reply
  #host: string
  #edgeId: string | undefined
  #routed: Routed | undefined
  #forwarding: Forwarding | undefined
  #bridge: { readonly key: string; readonly stream: WatchedStream } | undefined
  /** Bytes of a connection that was upgraded, from the visitor and to it. */
  #carried = { in: 0, out: 0 }
  #upstreamFault: VisitorErrorCode | undefined
  #deadline: Deadline | undefined
  #isOver = false

  constructor(tools: ProxyTools, exchange: Exchange, connection: VisitorConnection) {
    this.#tools = tools
    this.#exchange = exchange
    this.#connection = connection
    this.#startedAt = tools.now()
    this.#host = exchange.head.authority
    const onMoved = (): void => this.#moved()
    this.#body = new RequestBody({
      body: exchange.body,
      length: exchange.head.body,
      onMoved,
      // Whoever carries the exchange says that it is over, right after.
      onFailed: () => this.#forwarding?.cancel(),
    })
    this.#reply = new Reply({ exchange, onMoved, onCut: () => this.#finish({ isCut: true }) })
    exchange.onDone = () => this.#finish({ isCut: false })
    exchange.onAbort = () => this.#finish({ isCut: true })
  }

  /** Never throws. */
  start(): void {
    this.#guard(() => {
      const found = this.#findRoute()
      if (typeof found === 'string') this.#refuse(found)
      else if ('location' in found) this.#reply.redirect(found.location)
      // R-3.2: the modules in their order, and after the last of them the backend.
      else this.#ask(found, 0)
    })
  }

  #findRoute(): Routed | VisitorErrorCode | { readonly location: string } {
    const { head } = this.#exchange
    const { edges, publicHttpsPort, newRequestId } = this.#tools

    // Who is asked for, in the one spelling that all that follows reads.
    const host = hostOf(head.authority)
    if (host === undefined) return 'BAD_VISITOR_REQUEST'
    this.#host = host

    // Whose name that is, and whether this connection may reach it.
    const edge = pickEdge(host, this.#connection, edges)
    if (edge === 'to_https') return { location: httpsUrl(host, publicHttpsPort(), head.target) }
    if (typeof edge === 'string') return edge
    this.#edgeId = edge.id
    if (edge.broken !== undefined) return 'MODULE_UNAVAILABLE'

    // Design §6 rule 4: decisions are made by the canonical path, what goes upstream is what was sent.
    const { path: sentPath, query } = splitTarget(head.target)
    const path = canonicalPath(sentPath)
    if (path === undefined) return 'BAD_VISITOR_REQUEST'

    const route = edge.route(path)
    if (route === undefined) return 'NO_ROUTE'

    // Design §6 rule 5: before any module looks, so that none takes the visitor's word for ours.
    stripRequest(head.headers)
    const { peer, tls } = this.#connection
    const parts = { head, peer, tls, host, path, query, newRequestId, body: this.#body, startedAt: this.#startedAt }
    const ctx = new Context({ ...parts, edgeId: edge.id, routeId: route.id })
    this.#routed = { edge, route, ctx }
    return route.broken === undefined ? this.#routed : 'MODULE_UNAVAILABLE'
  }

  /** Asks the request phases from number `from` on. */
  #ask(routed: Routed, from: number): void {
    const phases = routed.route.request
    for (let i = from; i < phases.length; i++) {
      const verdict = phases[i]?.(routed.ctx)
      if (verdict === undefined) continue
      if ('then' in verdict) void this.#await(verdict, routed, i + 1)
      else this.#decide(verdict, routed)
      return
    }
    this.#reach(routed)
  }

  async #await(pending: Promise<Verdict>, routed: Routed, next: number): Promise<void> {
    try {
      const verdict = await pending
      if (this.#isOver) return
      if (verdict === undefined) this.#ask(routed, next)
      else this.#decide(verdict, routed)
    } catch (error) {
      this.broke(error)
    }
  }

  #decide(verdict: NonNullable<Verdict>, { route, ctx }: Routed): void {
    if ('refuse' in verdict) {
      this.#refuse(verdict.refuse, verdict.headers)
      return
    }
    const { status, headers, body } = verdict.respond
    const bytes = Buffer.from(body)
    const head: ResponseHead = { status, reason: '', headers: HeaderList.of(headers), body: bytes.length }
    this.#reply.send({ head, body: bytes, isFromUpstream: false }, route, ctx)
  }

  /** All modules let it pass. */
  #reach(routed: Routed): void {
    const { backend, bridge } = routed.route
    if (!backend) {
      this.#refuse('NO_BACKEND')
      return
    }
    this.#deadline = this.#tools.sweep.add(() => this.#guard(() => this.#idle()))
    this.#moved()
    if (bridge) void this.#goBetween(bridge, backend, routed)
    else this.#forward(backend, routed)
  }

  #forward(backend: Backend, routed: Routed): void {
    const { peer } = this.#connection
    this.#forwarding = new Forwarding({
      request: this.#outgoing(routed),
      body: this.#body,
      targets: backend.targets(),
      visit: this.#visit(routed),
      ends: peer,
      pool: this.#tools.pool,
      owner: this,
      offline: offlineCode(routed),
    })
    this.#forwarding.start()
  }

  #outgoing({ route, ctx }: Routed): UpstreamRequest {
    const { method, target, body, upgrade } = this.#exchange.head
    const headers = forwardedHeaders(ctx)
    // Last, so that no other module sees what they change, and so that they can take away what was just added.
    for (const phase of route.upstream) phase({ headers }, ctx)
    if (ctx.replacedHost !== undefined) headers.set('Host', ctx.replacedHost)
    else if (!headers.has('host')) headers.prepend('Host', ctx.authority)
    return { method, target, headers, body, upgrade }
  }

  #visit({ edge }: Routed): Visit {
    const { ip, port } = this.#connection.peer
    const proto = edge.kind === 'http' ? 'http' : 'https'
    return { ip, port, proto, edge: edge.isEndpoint ? 'none' : 'https', passthroughTls: false }
  }

  async #goBetween(bridge: NonNullable<Phases['bridge']>, backend: Backend, routed: Routed): Promise<void> {
    try {
      const head = acceptWebSocket(routed.ctx, this.#exchange.head.upgrade)
      if (!head) {
        this.#refuse('WEBSOCKET_REQUIRED')
        return
      }
      const visit = this.#visit(routed)
      const ends = this.#connection.peer
      const dialled = await dialFirst({ targets: backend.targets(), visit, ends, offline: offlineCode(routed) })
      if (typeof dialled === 'string') this.failed(dialled, undefined)
      else if (this.#isOver) dialled.stream.reset()
      else this.#join(bridge, head, dialled)
    } catch (error) {
      this.#bridge?.stream.reset()
      this.broke(error)
    }
  }

  #join(
    bridge: NonNullable<Phases['bridge']>,
    head: ResponseHead,
    { key, stream: dialled }: { key: string; stream: ByteStream },
  ): void {
    const stream = new WatchedStream(dialled, {
      onMoved: () => this.#moved(),
      onClosed: (error) => {
        this.#carried = { in: stream.written, out: stream.received }
        this.#finish({ isCut: error !== undefined })
      },
    })
    this.#bridge = { key, stream }
    bridge(this.#reply.accept(head), stream)
  }

  fixed({ status, headers, body }: FixedTarget): void {
    const head: ResponseHead = { status, reason: '', headers: HeaderList.of(headers), body: body.length }
    this.#give({ head, body, isFromUpstream: false })
  }

  inform(status: number, headers: HeaderList): void {
    this.#moved()
    stripResponse(headers)
    this.#guard(() => this.#exchange.inform(status, headers))
  }

  respond(head: ResponseHead, body: BodyReader): void {
    this.#moved()
    this.#clean(head)
    this.#give({ head, body, isFromUpstream: true })
  }

  upgraded(head: ResponseHead, stream: ByteStream): void {
    const chosen = head.headers.get('upgrade')
    this.#clean(head)
    if (chosen !== undefined) head.headers.set('Upgrade', chosen)
    this.#guard(() => {
      const { route, ctx } = this.#routed ?? notRouted()
      const visitor = this.#reply.upgrade(head, route, ctx)
      if (!visitor) {
        stream.reset()
        return
      }
      this.#unwatch()
      relay(visitor, stream, {
        idleMs: this.#tools.idleMs,
        onDone: ({ there, back, error }) => {
          this.#carried = { in: there, out: back }
          this.#finish({ isCut: error !== undefined })
        },
      })
    })
  }

  failed(code: VisitorErrorCode, cause: Error | undefined): void {
    if (this.#isOver) return
    if (cause) this.#tools.log.debug({ edge: this.#edgeId, code, err: cause }, 'a service could not be asked')
    this.#upstreamFault = code
    this.#guard(() => this.#refuse(code))
  }

  broke(error: unknown): void {
    if (this.#isOver) return
    const route = this.#routed?.route.id
    this.#tools.log.error({ edge: this.#edgeId, route, err: error }, 'a request broke on its way')
    this.#forwarding?.cancel()
    if (this.#reply.hasBegun) {
      this.#reply.cut()
      this.#finish({ isCut: true })
    } else this.#refuse('BROKEN_MODULE')
  }

  #give(given: Given): void {
    this.#guard(() => {
      const { route, ctx } = this.#routed ?? notRouted()
      this.#reply.send(given, route, ctx)
    })
  }

  /** Takes away what a service cannot say, and puts back what the visitor called it. */
  #clean({ headers }: ResponseHead): void {
    stripResponse(headers)
    const { ctx } = this.#routed ?? notRouted()
    const location = ctx.replacedHost === undefined ? undefined : headers.get('location')
    if (ctx.replacedHost === undefined || location === undefined) return
    headers.set('Location', publicLocation(location, ctx.replacedHost, ctx))
  }

  #refuse(code: VisitorErrorCode, headers?: readonly (readonly [string, string])[]): void {
    this.#reply.page(code, headers)
  }

  #moved(): void {
    if (this.#deadline) this.#deadline.at = this.#tools.sweep.after(this.#tools.idleMs)
  }

  /** Nothing moved for too long. */
  #idle(): void {
    this.#forwarding?.cancel()
    this.#bridge?.stream.reset()
    if (this.#reply.hasBegun) {
      this.#reply.cut()
      this.#finish({ isCut: true })
    } else this.failed('UPSTREAM_TIMEOUT', undefined)
  }

  #unwatch(): void {
    if (this.#deadline) this.#tools.sweep.remove(this.#deadline)
    this.#deadline = undefined
  }

  #finish({ isCut }: { isCut: boolean }): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#unwatch()
    this.#reply.stop()
    this.#body.stop()
    // A service that answered before it had all of the request is not told the rest.
    if (isCut || !this.#body.isWhole) this.#forwarding?.cancel()
    this.#tell(isCut)
  }

  #tell(isCut: boolean): void {
    const { log, now, onRequest } = this.#tools
    const { status, isFromUpstream, fault, sent } = this.#reply
    const { route, ctx } = this.#routed ?? {}
    if (route && ctx && route.done.length > 0) {
      const summary = { status, isFromUpstream, fault: this.#upstreamFault }
      for (const phase of route.done) {
        try {
          phase(summary, ctx)
        } catch (error) {
          log.error({ edge: this.#edgeId, route: route.id, err: error }, 'a module failed after a request')
        }
      }
    }
    const { head } = this.#exchange
    onRequest?.({
      peer: this.#connection.peer,
      startedAt: this.#startedAt,
      durationMs: now() - this.#startedAt,
      requestId: ctx?.requestId,
      scheme: this.#connection.tls ? 'https' : 'http',
      version: head.version,
      method: head.method,
      host: this.#host,
      path: splitTarget(head.target).path,
      edge: this.#edgeId,
      route: route?.id,
      target: this.#forwarding?.target?.key ?? this.#bridge?.key,
      isReused: this.#forwarding?.isReused ?? false,
      status,
      isFromUpstream,
      fault,
      isCut,
      bytesIn: this.#body.received + this.#carried.in,
      bytesOut: sent + this.#carried.out,
      found: ctx?.hasFindings ? ctx.found : undefined,
    })
  }

  /** What throws in here is this request's trouble alone. */
  #guard(step: () => void): void {
    try {
      step()
    } catch (error) {
      this.broke(error)
    }
  }
}

/** An endpoint of an agent is gone when its agent is; an edge stays, and has nobody behind it. */
function offlineCode({ edge }: Routed): VisitorErrorCode {
  return edge.isEndpoint ? 'ENDPOINT_OFFLINE' : 'BACKEND_OFFLINE'
}

/** D42a */
function httpsUrl(host: string, port: number, target: string): string {
  return `https://${host}${port === 443 ? '' : `:${port}`}${target === '*' ? '/' : target}`
}

function notRouted(): never {
  throw new Error('a request is answered before it is routed')
}
