/** What a visitor is answered, once: a page of ours, a module's answer, or the service's, past the modules that may change it. */
import type { ByteStream } from '../../lib/byte-stream.ts'
import type { Clock } from '../../lib/clock.ts'
import { HeaderList } from '../../lib/header-list.ts'
import type { VisitorErrorCode } from '../../model/visitor-errors.ts'
import type { Incoming, RequestContext } from '../../modules/phases.ts'
import type { Route } from '../edge.ts'
import type { BodyReader, BodyWriter, Exchange, ResponseHead } from '../exchange.ts'
import { errorPage } from '../pages/error-page.ts'
import { AnswerBody, type AnswerOwner, IncomingAnswer } from './answer.ts'

type Pairs = readonly (readonly [string, string])[]

/** An answer that a module or a service gave. */
export interface Given {
  readonly head: ResponseHead
  readonly body: BodyReader | Buffer
  readonly isFromUpstream: boolean
  /** Names that are no trailers of it. */
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
  readonly #now: Clock
  #writer: BodyWriter | undefined
  #body: AnswerBody | undefined

  constructor(exchange: Exchange, owner: AnswerOwner, now: Clock) {
    this.#exchange = exchange
    this.#owner = owner
    this.#now = now
  }

  /** Whether there is no other answer possible any more. */
  get hasBegun(): boolean {
    return this.status !== 0
  }

  /** Bytes of its body. */
  get sent(): number {
    return this.#body?.sent ?? 0
  }

  /** An error, past all modules: what it says of itself is to be trusted. */
  page(code: VisitorErrorCode, more: Pairs = []): void {
    const { head, body } = errorPage(code, this.#exchange.head)
    for (const [name, value] of more) head.headers.add(name, value)
    this.fault = code
    this.#begin(head, false).sendWhole(body)
  }

  /** D42a */
  redirect(location: string): void {
    const headers = HeaderList.of([
      ['location', location],
      ['cache-control', 'no-store'],
    ])
    this.#begin({ status: 307, reason: '', headers, body: 0 }, false).sendWhole(Buffer.alloc(0))
  }

  /** An answer that the response phases of `route` see first. Throws when it cannot be sent as they left it. */
  send(given: Given, route: Route, ctx: RequestContext): void {
    const { body, isFromUpstream, removed } = given
    let { head } = given
    let encoders: AnswerBodyEncoders
    if (route.response.length > 0) {
      const answer = new IncomingAnswer({ ...answerOf(head), isFromUpstream, hasBody: hasBody(head, ctx.method) })
      for (const phase of route.response) phase(answer, ctx)
      if (answer.hasBody) encoders = answer.encoders
      const { status, headers } = answer
      const reason = status === head.status ? head.reason : ''
      head = { status, reason, headers, body: encoders ? 'unknown' : head.body }
    }
    const sending = this.#begin(head, isFromUpstream, encoders, removed)
    if (Buffer.isBuffer(body)) sending.sendWhole(body)
    else sending.readFrom(body)
  }

  /**
   * Switches the visitor to another protocol; undefined when a response phase answers otherwise, which is then sent.
   */
  upgrade(head: ResponseHead, route: Route, ctx: RequestContext): ByteStream | undefined {
    const answer = new IncomingAnswer({ ...answerOf(head), isFromUpstream: true, hasBody: false })
    for (const phase of route.response) phase(answer, ctx)
    if (answer.status !== 101) {
      this.#begin({ status: answer.status, reason: '', headers: answer.headers, body: 0 }, true).sendWhole(
        Buffer.alloc(0),
      )
      return undefined
    }
    const stream = this.#exchange.upgrade({ ...head, headers: answer.headers })
    this.status = 101
    this.isFromUpstream = true
    return stream
  }

  /** Switches the visitor to a protocol that is spoken here. */
  accept(head: ResponseHead): ByteStream {
    const stream = this.#exchange.upgrade(head)
    this.status = head.status
    return stream
  }

  /** The visitor must see that the answer is not whole. */
  cut(): void {
    this.#body?.stop()
    this.#writer?.abort()
  }

  /** Nobody is there to see it. */
  stop(): void {
    this.#body?.stop()
  }

  #begin(
    head: ResponseHead,
    isFromUpstream: boolean,
    encoders?: AnswerBodyEncoders,
    removed?: ReadonlySet<string>,
  ): AnswerBody {
    // RFC 9110 §6.6.1: whoever makes an answer and has a clock says when.
    if (!isFromUpstream && !head.headers.has('date')) head.headers.add('date', new Date(this.#now()).toUTCString())
    const writer = this.#exchange.respond(head)
    this.status = head.status
    this.isFromUpstream = isFromUpstream
    this.#writer = writer
    this.#body = new AnswerBody(writer, this.#owner, encoders, removed)
    return this.#body
  }
}

type AnswerBodyEncoders = IncomingAnswer['encoders']

function answerOf({ status, headers, body }: ResponseHead): Pick<Incoming, 'status' | 'headers' | 'bodyLength'> {
  return { status, headers, bodyLength: typeof body === 'number' ? body : undefined }
}

/** RFC 9112 §6.3: some have none whatever they announce. */
function hasBody({ status, body }: ResponseHead, method: string): boolean {
  return body !== 'none' && body !== 0 && method !== 'HEAD' && status !== 204 && status !== 304
}
