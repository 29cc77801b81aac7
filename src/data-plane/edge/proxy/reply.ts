/**
 * The one answer to a visitor: an error page, a module's answer, or the service's after the modules have changed it.
 */
import type { ByteStream } from '../../../lib/bytes/byte-stream.ts'
import { HeaderList } from '../../../lib/http/header-list.ts'
import type { VisitorErrorCode } from '../../../model/visitor-errors.ts'
import type { RequestContext, Respond, ResponseVerdict } from '../../../modules/phases.ts'
import type { BodyReader, BodyWriter, Exchange, ResponseHead } from '../../requests/http-exchange.ts'
import type { Route } from '../compiled-edge.ts'
import type { ProxyTools } from './proxy-tools.ts'
import { AnswerBody, type AnswerOwner, IncomingAnswer } from './send-answer.ts'

type Pairs = readonly (readonly [string, string])[]

/** An answer from a module or a service. */
export interface GivenAnswer {
  readonly head: ResponseHead
  readonly body: BodyReader | Buffer
  readonly isFromUpstream: boolean
  /** Names that must not be sent as trailers. */
  readonly removed?: ReadonlySet<string> | undefined
}

export class Reply {
  /** 0 while there is none. */
  status = 0
  isFromUpstream = false
  /** The error that the visitor is shown. */
  fault: VisitorErrorCode | undefined
  readonly #exchange: Exchange
  readonly #owner: AnswerOwner
  readonly #tools: Pick<ProxyTools, 'now' | 'pages'>
  #writer: BodyWriter | undefined
  #body: AnswerBody | undefined

  constructor(exchange: Exchange, owner: AnswerOwner, tools: Pick<ProxyTools, 'now' | 'pages'>) {
    this.#exchange = exchange
    this.#owner = owner
    this.#tools = tools
  }

  /** Whether the answer has begun, so that no other is possible. */
  get hasBegun(): boolean {
    return this.status !== 0
  }

  /** Bytes of its body. */
  get sent(): number {
    return this.#body?.sent ?? 0
  }

  /** Sends an error page, bypassing all modules, so that its error code can be trusted. */
  page(code: VisitorErrorCode, more: Pairs = []): void {
    const { head, body } = this.#tools.pages().forRequest(code, this.#exchange.head, this.#owner.requestId())
    for (const [name, value] of more) head.headers.add(name, value)
    this.fault = code
    this.#begin(head, false).sendWhole(body)
  }

  /** D42a: redirects to TLS. */
  redirect(location: string): void {
    const headers = HeaderList.of([
      ['location', location],
      ['cache-control', 'no-store'],
    ])
    this.#begin({ status: 307, reason: '', headers, body: 0 }, false).sendWhole(Buffer.alloc(0))
  }

  /** Sends an answer after the response phases of `route`. Throws when the result cannot be sent. */
  send(given: GivenAnswer, route: Route, ctx: RequestContext): void {
    if (route.response.length === 0) this.#deliver(given, undefined)
    else
      this.#ask({ given, answer: incoming(given, ctx) }, 0, {
        route,
        ctx,
        deliver: (asked) => this.#deliverAsked(asked),
      })
  }

  /**
   * Upgrades the visitor and passes its connection to `then`, unless a response phase answers something else, which is
   * sent instead.
   */
  upgrade(head: ResponseHead, route: Route, ctx: RequestContext, then: (visitor: ByteStream) => void): void {
    const given: GivenAnswer = { head, body: NO_BODY, isFromUpstream: true }
    const deliver = (asked: Asked): void => {
      if (asked.given !== given || asked.answer.status !== 101) {
        this.#owner.dropUpstream()
        this.#deliverAsked(asked)
        return
      }
      const answered = { ...head, headers: asked.answer.headers }
      this.#owner.began(answered)
      const stream = this.#exchange.upgrade(answered)
      this.status = 101
      this.isFromUpstream = true
      then(stream)
    }
    this.#ask({ given, answer: incoming(given, ctx) }, 0, { route, ctx, deliver })
  }

  /** Runs the response phases from number `from` on, then delivers the result. */
  #ask(first: Asked, from: number, asking: Asking): void {
    let asked = first
    const { route, ctx, deliver } = asking
    for (let i = from; i < route.response.length; i++) {
      const verdict = route.response[i]?.(asked.answer, ctx)
      if (verdict === undefined) continue
      if ('then' in verdict) {
        void this.#await(verdict, asked, i + 1, asking)
        return
      }
      const next = this.#replace(verdict, asked, ctx)
      if (!next) return
      asked = next
    }
    deliver(asked)
  }

  async #await(pending: Promise<ResponseVerdict>, asked: Asked, next: number, asking: Asking): Promise<void> {
    try {
      const verdict = await pending
      if (this.#owner.isOver || this.hasBegun) return
      const replaced = verdict === undefined ? asked : this.#replace(verdict, asked, asking.ctx)
      if (replaced) this.#ask(replaced, next, asking)
    } catch (error) {
      this.#owner.broke(error)
    }
  }

  /** The answer given instead; undefined when it is already sent. */
  #replace(verdict: NonNullable<ResponseVerdict>, { given }: Asked, ctx: RequestContext): Asked | undefined {
    if (given.isFromUpstream) this.#owner.dropUpstream()
    if ('respond' in verdict) {
      const made = givenBy(verdict)
      return { given: made, answer: incoming(made, ctx) }
    }
    if ('close' in verdict) this.#owner.hangUp()
    else this.page(verdict.refuse, verdict.headers)
    return undefined
  }

  #deliverAsked({ given, answer }: Asked): void {
    const { status, headers } = answer
    const encoders = answer.hasBody ? answer.encoders : undefined
    const reason = status === given.head.status ? given.head.reason : ''
    const head: ResponseHead = { status, reason, headers, body: encoders ? 'unknown' : given.head.body }
    this.#deliver({ ...given, head }, encoders)
  }

  #deliver({ head, body, isFromUpstream, removed }: GivenAnswer, encoders: AnswerBodyEncoders): void {
    const sending = this.#begin(head, isFromUpstream, encoders, removed)
    if (Buffer.isBuffer(body)) sending.sendWhole(body)
    else sending.readFrom(body)
  }

  /** Upgrades the visitor to a protocol that the edge speaks itself. */
  accept(head: ResponseHead): ByteStream {
    this.#owner.began(head)
    const stream = this.#exchange.upgrade(head)
    this.status = head.status
    return stream
  }

  /** Cuts the answer off, so that the visitor sees it is incomplete. */
  cut(): void {
    this.#body?.stop()
    this.#writer?.abort()
  }

  /** Stops; the visitor is gone. */
  stop(): void {
    this.#body?.stop()
  }

  #begin(
    head: ResponseHead,
    isFromUpstream: boolean,
    encoders?: AnswerBodyEncoders,
    removed?: ReadonlySet<string>,
  ): AnswerBody {
    // RFC 9110 §6.6.1: an origin with a clock sends `Date`.
    if (!isFromUpstream && !head.headers.has('date'))
      head.headers.add('date', new Date(this.#tools.now()).toUTCString())
    this.#owner.began(head)
    if (!isFromUpstream) this.#exchange.ignoreBody()
    const writer = this.#exchange.respond(head)
    this.status = head.status
    this.isFromUpstream = isFromUpstream
    this.#writer = writer
    this.#body = new AnswerBody(writer, this.#owner, encoders, removed)
    return this.#body
  }
}

type AnswerBodyEncoders = IncomingAnswer['encoders']

const NO_BODY = Buffer.alloc(0)

/** An answer, and the view of it that response phases change. */
interface Asked {
  readonly given: GivenAnswer
  readonly answer: IncomingAnswer
}

interface Asking {
  readonly route: Route
  readonly ctx: RequestContext
  readonly deliver: (asked: Asked) => void
}

/** An answer that a module made. */
export function givenBy({ respond: { status, headers, body } }: Respond): GivenAnswer {
  const bytes = Buffer.from(body)
  return {
    head: { status, reason: '', headers: HeaderList.of(headers), body: bytes.length },
    body: bytes,
    isFromUpstream: false,
  }
}

function incoming({ head, isFromUpstream }: GivenAnswer, { method }: RequestContext): IncomingAnswer {
  const { status, headers, body } = head
  const bodyLength = typeof body === 'number' ? body : undefined
  return new IncomingAnswer({ status, headers, bodyLength, isFromUpstream, hasBody: hasBody(head, method) })
}

/** RFC 9112 §6.3: some responses have no body, whatever they announce. */
function hasBody({ status, body }: ResponseHead, method: string): boolean {
  return status !== 101 && body !== 'none' && body !== 0 && method !== 'HEAD' && status !== 204 && status !== 304
}
