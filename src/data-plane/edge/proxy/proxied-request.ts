/**
 * Takes one request through the edge, from its head to its last byte.
 *
 * One thing: a request is one object, and this is its life in order.
 */
import type { ByteStream } from '../../../lib/bytes/byte-stream.ts'
import type { Movable } from '../../../lib/bytes/close-when-idle.ts'
import { relay } from '../../../lib/bytes/relay.ts'
import { HeaderList } from '../../../lib/http/header-list.ts'
import type { Aged } from '../../../lib/limits/age-list.ts'
import type { Logger } from '../../../lib/log/create-log.ts'
import type { VisitorErrorCode } from '../../../model/visitor-errors.ts'
import type { Peer, Phases, RequestContext, RequestVerdict, Summary } from '../../../modules/phases.ts'
import type { BodyReader, Exchange, RequestHead, ResponseHead, UpstreamRequest } from '../../requests/http-exchange.ts'
import type { ExchangeCapture } from '../../requests/running-captures.ts'
import type { Edge, Route } from '../compiled-edge.ts'
import type { Deadline, Expiring } from '../deadlines.ts'
import { type Backend, dialFirst, type FixedTarget, type Visit } from '../dial.ts'
import { refusedNow } from '../judge-again.ts'
import {
  chooseRoute,
  type Found,
  findRoute,
  nothingFound,
  offlineCode,
  type Routed,
  routeOrThrow,
  type Search,
} from './find-route.ts'
import { Forwarding, type ForwardingOwner } from './forwarding.ts'
import { splitTarget } from './path-readings.ts'
import type { VisitorConnection } from './pick-edge.ts'
import { cleanResponse, forwardedHeaders, removedAsTrailers, stripResponse } from './proxied-headers.ts'
import type { ProxyTools } from './proxy-tools.ts'
import { type GivenAnswer, givenBy, Reply } from './reply.ts'
import { noRequestBody, RequestBody, type VisitorBody } from './request-body.ts'
import type { AnswerOwner } from './send-answer.ts'
import { WatchedStream } from './watched-stream.ts'
import { acceptsWebSocket, acceptWebSocket } from './websocket.ts'

/**
 * How long a visitor may take to send a body that modules read, in milliseconds. Absolute, since the body holds memory
 * that others wait for; 10 MiB, the most that is read, fits at 0.7 Mbit/s.
 */
const READ_MS = 120_000

export class ProxiedRequest implements Search, ForwardingOwner, AnswerOwner, Expiring, Aged<ProxiedRequest> {
  readonly tools: ProxyTools
  readonly connection: VisitorConnection
  readonly startedAt: number
  readonly head: RequestHead
  readonly body: VisitorBody
  isOver = false
  older: ProxiedRequest | undefined
  newer: ProxiedRequest | undefined
  readonly #exchange: Exchange
  readonly #reply: Reply
  /** Times since the request began, in milliseconds; see `AccessRecord`. */
  #passedMs = -1
  #sentMs = -1
  #answeredMs = -1
  #found: Found = nothingFound
  /** Set when heads and bodies are kept. */
  #capture: ExchangeCapture | undefined
  #forwarding: Forwarding | undefined
  #bridge: { readonly key: string; readonly stream: WatchedStream } | undefined
  /** An upgraded connection that is joined with the service's. */
  #joined: Movable | undefined
  /** Bytes of an upgraded connection, from the visitor and to it. */
  #carriedIn = 0
  #carriedOut = 0
  #upstreamFault: VisitorErrorCode | undefined
  /** Whether all modules let it pass. */
  #isReached = false
  /** While a service's answer is being passed on; an answer that is complete at once ends when it begins. */
  #isAnswering = false
  #deadline: Deadline | undefined
  /** Whether it may wait for `idleMs`: its body is whole, or nobody holds it up. */
  #isPatient = true
  /** The service's side of a connection that is being upgraded. */
  #upgraded: ByteStream | undefined
  /** Deadline for the modules, in the time of the sweep. */
  #readUntil = Number.POSITIVE_INFINITY
  /** The id of a request that was refused before it had a context. */
  #ownId: string | undefined

  constructor(tools: ProxyTools, exchange: Exchange, connection: VisitorConnection) {
    const { head } = exchange
    const { body: length } = head
    this.tools = tools
    this.connection = connection
    this.startedAt = tools.now()
    this.head = head
    this.#exchange = exchange
    this.body = length === 'none' || length === 0 ? noRequestBody : this.#bodyOf(exchange)
    this.#reply = new Reply(exchange, this, tools)
    exchange.onDone = () => this.#finish({ isCut: false })
    exchange.onAbort = () => this.#finish({ isCut: true })
    tools.open.add(this)
  }

  get edgeId(): string | undefined {
    return this.#found.edge?.id
  }

  /** D42: ends it when `edge`, as it is served now, refuses its visitor by what is known of the connection. */
  judgeAgain(edge: Edge | undefined): void {
    const { edge: before, route } = this.#found
    if (!edge || !before || !route || this.connection.replay) return
    const { peer, tls } = this.connection
    const known = { peer, tls, serverName: tls?.serverName }
    const now = chooseRoute(edge, splitTarget(this.head.target).path)
    const accept = typeof now === 'string' ? [] : now.accept.filter((each) => !route.accept.includes(each))
    const asEdge = { ...edge, accept: [...edge.accept, ...accept] }
    const refused = refusedNow(asEdge, before, known)
    if (refused) this.turnAway(refused)
  }

  /** Ends it, since its visitor is no longer let in. */
  turnAway(code: VisitorErrorCode): void {
    this.#guard(() => {
      this.#forwarding?.cancel()
      this.#bridge?.stream.reset()
      if (this.#joined) this.#joined.destroy()
      else if (!this.#reply.hasBegun) this.#refuse(code)
      else {
        this.#reply.cut()
        this.#finish({ isCut: true })
      }
    })
  }

  /** Never throws. */
  start(): void {
    try {
      const found = findRoute(this, this.#found)
      this.#found = found
      if (found.edge && (this.connection.replay || !this.tools.captures.isOff)) this.#keep(found.edge.id)
      if (found.pending) void this.#startAgain(found.pending)
      else if (found.fault === 'MISDIRECTED') this.#sendAway(found.host)
      else if (found.fault !== undefined) this.#refuse(found.fault)
      else if (found.location !== undefined) this.#reply.redirect(found.location)
      // the modules in their order, and after the last of them the backend.
      else this.#ask(routeOrThrow(found), 0)
    } catch (error) {
      this.broke(error)
    }
  }

  #keep(edgeId: string): void {
    this.#capture = this.connection.replay?.capture ?? this.tools.captures.begin(edgeId)
    this.#capture?.request(this.head)
  }

  /** Starts again once it is known whether another node serves the name. */
  async #startAgain(pending: Promise<void>): Promise<void> {
    await pending
    if (!this.#isSettled) this.start()
  }

  /**
   * This connection cannot serve the name, so a client that reuses it would be refused forever; close it. An HTTP/2
   * client may have asked for a name that is not the connection's own, and knows what 421 means; then the connection
   * stays open.
   */
  #sendAway(host: string | undefined): void {
    if (this.head.version === '1.1' || host === this.connection.tls?.serverName) this.#exchange.endConnection()
    this.#refuse('MISDIRECTED')
  }

  #bodyOf({ body, head: { body: length, headers } }: Exchange): RequestBody {
    return new RequestBody({
      body,
      length,
      removed: removedAsTrailers(headers),
      onMoved: (chunk) => {
        this.#capture?.requestBody(chunk)
        this.moved()
      },
      // The exchange reports its end right after this.
      onFailed: () => this.#forwarding?.cancel(),
    })
  }

  /** Runs the request phases from number `from` on. */
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

  async #await(pending: Promise<RequestVerdict>, routed: Routed, next: number): Promise<void> {
    try {
      if (this.#readUntil === Number.POSITIVE_INFINITY) this.#readUntil = this.tools.sweep.after(READ_MS)
      this.#watch()
      const verdict = await pending
      if (this.#isSettled) return
      if (verdict === undefined) this.#ask(routed, next)
      else this.#decide(verdict, routed)
    } catch (error) {
      this.broke(error)
    }
  }

  #decide(verdict: NonNullable<RequestVerdict>, { route, ctx }: Routed): void {
    // A visitor that reads the answer slowly must not hold the body's memory meanwhile.
    this.body.forget()
    if ('refuse' in verdict) {
      this.#refuse(verdict.refuse, verdict.headers)
      return
    }
    if ('close' in verdict) this.hangUp()
    else this.#reply.send(givenBy(verdict), route, ctx)
  }

  /** All modules let it pass. */
  #reach(routed: Routed): void {
    const { backend } = routed.route
    if (!backend) {
      this.#refuse('NO_BACKEND')
      return
    }
    this.#isReached = true
    // Without modules no time has passed, and reading the clock is not free.
    this.#passedMs = routed.route.request.length === 0 ? 0 : this.#age()
    this.#sentMs = this.#passedMs
    this.#readUntil = Number.POSITIVE_INFINITY
    this.#watch()
    const pending = backend.found?.()
    if (pending) void this.#reachFound(pending, backend, routed)
    else this.#dial(backend, routed)
  }

  async #reachFound(pending: Promise<unknown>, backend: Backend, routed: Routed): Promise<void> {
    await pending
    if (this.#isSettled) return
    this.#sentMs = this.#age()
    try {
      this.#dial(backend, routed)
    } catch (error) {
      this.broke(error)
    }
  }

  #dial(backend: Backend, routed: Routed): void {
    const { bridge } = routed.route
    if (bridge) void this.#openBridge(bridge, backend, routed)
    else this.#forward(backend, routed)
  }

  #forward(backend: Backend, routed: Routed): void {
    const { peer, replay } = this.connection
    const { removedFromRequest } = routed.route
    if (removedFromRequest.size > 0) this.body.removeTrailers(removedFromRequest)
    const request = outgoingRequest(this.head, routed)
    if (replay) request.headers.set('Postern-Replay', replay.of)
    this.#forwarding = new Forwarding({
      request,
      body: this.body,
      targets: backend.targets(),
      ends: peer,
      pool: this.tools.pool,
      owner: this,
      offline: offlineCode(routed),
    })
    this.#forwarding.start()
  }

  dialled(): void {
    this.#sentMs = this.#age()
  }

  visit(): Visit {
    return visitOf(routeOrThrow(this.#found), this.connection.peer)
  }

  async #openBridge(bridge: NonNullable<Phases['bridge']>, backend: Backend, routed: Routed): Promise<void> {
    try {
      const head = acceptWebSocket(routed.ctx, this.head.upgrade)
      if (!head) {
        this.#refuse('WEBSOCKET_REQUIRED')
        return
      }
      const visit = this.visit()
      const ends = this.connection.peer
      const dialled = await dialFirst({ targets: backend.targets(), visit, ends, offline: offlineCode(routed) })
      if (typeof dialled === 'string') this.failed(dialled, undefined)
      else if (this.#isSettled) dialled.stream.reset()
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
      onMoved: () => this.moved(),
      onClosed: (error) => {
        this.#carriedIn = stream.written
        this.#carriedOut = stream.received
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
    this.moved()
    this.#guard(() => {
      const { removedFromResponse } = routeOrThrow(this.#found).route
      stripResponse(headers)
      if (removedFromResponse.size > 0) headers.removeWhere(({ key }) => removedFromResponse.has(key))
      this.#exchange.inform(status, headers)
    })
  }

  respond(head: ResponseHead, body: BodyReader): void {
    this.moved()
    const { removedFromResponse } = routeOrThrow(this.#found).route
    // Only a body of unknown length has trailers.
    const removed = head.body === 'unknown' ? removedAsTrailers(head.headers, removedFromResponse) : undefined
    this.#isAnswering = true
    this.#give({ head, body, isFromUpstream: true, removed })
    this.#isAnswering = false
  }

  upgraded(head: ResponseHead, stream: ByteStream): void {
    this.#guard(() => {
      const { route, ctx } = routeOrThrow(this.#found)
      // D127: over HTTP/2 the visitor does not check this.
      if (this.head.version === '2' && !acceptsWebSocket(head.headers, ctx.headers)) {
        stream.reset()
        this.failed('UPSTREAM_INVALID', new Error('a 101 that does not accept the WebSocket'))
        return
      }
      const chosen = head.headers.get('upgrade')
      cleanResponse(head.headers, ctx)
      if (chosen !== undefined) head.headers.set('Upgrade', chosen)
      this.#upgraded = stream
      this.#reply.upgrade(head, route, ctx, (visitor) => this.#carry(visitor, stream))
    })
  }

  #carry(visitor: ByteStream, service: ByteStream): void {
    this.#upgraded = undefined
    this.#unwatch()
    this.#joined = relay(visitor, service, {
      idleMs: this.tools.idleMs,
      onDone: ({ there, back, error }) => {
        this.#carriedIn = there
        this.#carriedOut = back
        this.#finish({ isCut: error !== undefined })
      },
    })
  }

  dropUpstream(): void {
    this.#upgraded?.reset()
    this.#upgraded = undefined
    this.#forwarding?.cancel()
  }

  hangUp(): void {
    this.#exchange.hangUp()
  }

  requestId(): string {
    const { ctx } = this.#found
    if (ctx) return ctx.requestId
    this.#ownId ??= this.tools.newRequestId()
    return this.#ownId
  }

  failed(code: VisitorErrorCode, cause: Error | undefined): void {
    if (this.#isSettled) return
    if (cause) {
      const fields = { request: this.requestId(), edge: this.#found.edge?.id, code, err: cause }
      this.tools.log.debug(fields, 'upstream request failed')
    }
    this.#upstreamFault = code
    this.#guard(() => this.#refuse(code))
  }

  broke(error: unknown): void {
    if (this.isOver) return
    const { edge, route } = this.#found
    const fields = { request: this.requestId(), edge: edge?.id, route: route?.id, err: error }
    this.tools.log.error(fields, 'request handling failed')
    this.#forwarding?.cancel()
    try {
      if (!this.#reply.hasBegun) {
        this.#refuse('BROKEN_MODULE')
        return
      }
      this.#reply.cut()
    } catch {
      // Nothing can be sent any more; the exchange notices that nothing follows.
    }
    this.#finish({ isCut: true })
  }

  #give(given: GivenAnswer): void {
    try {
      const { route, ctx } = routeOrThrow(this.#found)
      if (given.isFromUpstream) cleanResponse(given.head.headers, ctx)
      this.#reply.send(given, route, ctx)
    } catch (error) {
      this.broke(error)
    }
  }

  #refuse(code: VisitorErrorCode, headers?: readonly (readonly [string, string])[]): void {
    this.#reply.page(code, headers)
  }

  /** Milliseconds since it began. */
  #age(): number {
    return this.tools.now() - this.startedAt
  }

  began(head: ResponseHead): void {
    this.#answeredMs = this.#age()
    this.#capture?.response(head)
  }

  wrote(chunk: Buffer): void {
    this.#capture?.responseBody(chunk)
    this.moved()
  }

  moved(): void {
    this.#isPatient = this.body.isWhole
    if (this.#deadline) this.#deadline.at = Math.min(this.tools.sweep.after(this.#idleMs), this.#readUntil)
  }

  /** For how long nothing may move. */
  get #idleMs(): number {
    return this.#isPatient ? this.tools.idleMs : this.tools.uploadMs
  }

  cutShort(): void {
    this.#finish({ isCut: true })
  }

  /** No byte moved for too long. */
  expired(): void {
    const { sweep, idleMs, uploadMs } = this.tools
    // The service may take longer to answer, and so may the visitor to go on, which is not said to have left.
    if (
      this.#deadline &&
      !this.#isPatient &&
      !this.body.isStalled &&
      idleMs > uploadMs &&
      sweep.now() < this.#readUntil
    ) {
      this.#isPatient = true
      this.#deadline.at = Math.min(sweep.after(idleMs - uploadMs), this.#readUntil)
    } else this.#guard(() => this.#idle())
  }

  /** Whether the visitor is answered, or gone. */
  get #isSettled(): boolean {
    return this.isOver || this.#reply.hasBegun
  }

  #watch(): void {
    // A body that is malformed from the start ends the request while a module reads it.
    if (this.isOver) return
    this.#deadline ??= this.tools.sweep.add(this)
    this.moved()
  }

  #idle(): void {
    this.#forwarding?.cancel()
    this.#bridge?.stream.reset()
    if (this.#reply.hasBegun) {
      this.#reply.cut()
      this.#finish({ isCut: true })
    } else if (this.#isReached) this.failed('UPSTREAM_TIMEOUT', undefined)
    else if (!this.body.isWhole) this.#refuse('REQUEST_BODY_TIMEOUT')
    else throw new Error('a module did not reach a verdict in time')
  }

  #unwatch(): void {
    if (this.#deadline) this.tools.sweep.remove(this.#deadline)
    this.#deadline = undefined
  }

  #finish({ isCut }: { isCut: boolean }): void {
    if (this.isOver) return
    this.isOver = true
    this.tools.open.delete(this)
    this.#unwatch()
    this.#reply.stop()
    this.body.stop()
    this.#upgraded?.reset()
    // A service that answered early is not sent the rest of the request.
    if (isCut || !this.body.isWhole) this.#forwarding?.cancel()
    this.#report(isCut)
    this.#letGo()
  }

  /** Something may still hold a finished request; drop its references, or the young collector copies all of it. */
  #letGo(): void {
    this.#exchange.onDone = this.#exchange.onAbort = undefined
    this.#forwarding = undefined
    this.#joined = undefined
    this.#found = nothingFound
  }

  #report(isCut: boolean): void {
    const { log, onRequest } = this.tools
    const { status, isFromUpstream, fault, sent } = this.#reply
    const { edge, host, route, ctx } = this.#found
    const { head } = this
    const target = this.#forwarding?.target
    if (route && ctx && route.done.length > 0) {
      tellDone(route, { status, isFromUpstream, fault: this.#upstreamFault }, ctx, log)
    }
    onRequest?.({
      peer: this.connection.peer,
      startedAt: this.startedAt,
      durationMs: this.#isAnswering && this.#answeredMs >= 0 ? this.#answeredMs : this.#age(),
      request: ctx ?? (this.#ownId === undefined ? undefined : { requestId: this.#ownId }),
      scheme: this.connection.tls ? 'https' : 'http',
      version: head.version,
      method: head.method,
      host: host ?? head.authority,
      path: splitTarget(head.target).path,
      sentTarget: head.target,
      edge: edge?.id,
      ownerId: edge?.ownerId,
      route: route?.id,
      target: target?.key ?? this.#bridge?.key,
      isReused: this.#forwarding?.isReused ?? false,
      passedMs: this.#passedMs,
      sentMs: target ? this.#sentMs : -1,
      answeredMs: this.#answeredMs,
      status,
      isFromUpstream,
      fault,
      isCut,
      bytesIn: this.body.received + this.#carriedIn,
      bytesOut: sent + this.#carriedOut,
      found: ctx?.hasFindings ? ctx.found : undefined,
      kept: this.#capture,
      replay: this.connection.replay,
    })
  }

  /** An error thrown in `step` affects this request only. */
  #guard(step: () => void): void {
    try {
      step()
    } catch (error) {
      this.broke(error)
    }
  }
}

/** Tells all modules the outcome of a request, even when one throws. */
function tellDone(route: Route, summary: Summary, ctx: RequestContext, log: Logger): void {
  for (const phase of route.done) {
    try {
      phase(summary, ctx)
    } catch (error) {
      log.error({ edge: ctx.edgeId, route: route.id, err: error }, 'module failed after a request')
    }
  }
}

/** A request as it goes upstream, and what its agent learns about the visitor. */
function outgoingRequest(head: RequestHead, { route, ctx }: Routed): UpstreamRequest {
  const { method, target, body, upgrade } = head
  const headers = forwardedHeaders(ctx)
  // Last, so that no other module sees the changes, and so that they can remove what was just added.
  for (const phase of route.upstream) phase({ headers }, ctx)
  if (ctx.replacedHost !== undefined) headers.set('Host', ctx.replacedHost)
  else if (!headers.has('host')) headers.prepend('Host', ctx.authority)
  return { method, target: ctx.replacedTarget ?? target, headers, body, upgrade }
}

function visitOf({ edge, ctx }: Routed, { ip, port }: Peer): Visit {
  return {
    ip,
    port,
    proto: edge.kind === 'http' ? 'http' : 'https',
    edge: edge.isEndpoint ? 'none' : 'https',
    passthroughTls: false,
    requestId: ctx.requestId,
  }
}
