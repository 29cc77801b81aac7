/** One request of a visitor and its answer, on an HTTP/1.1 connection. */
import type { ByteStream } from '../../../lib/bytes/byte-stream.ts'
import type { HeaderList } from '../../../lib/http/header-list.ts'
import type { BodyLength, BodyReader, BodyWriter, Exchange, ResponseHead } from '../../requests/http-exchange.ts'
import type { Framing } from './body-encoder.ts'
import { interimHead, responseHead, upgradeHead } from './head-writer.ts'
import { type IncomingBody, noBody } from './incoming-body.ts'
import type { ParsedRequest } from './request-head.ts'

/** What an exchange needs from its connection. */
export interface ExchangeOwner {
  /** Total bytes sent. */
  sent(): number
  /** Whether the connection must close after the answer; `isWanted` asks it to. */
  closesAfterAnswer(isWanted: boolean): boolean
  /** Ends the connection without an answer. */
  hangUp(): void
  /** Sends an interim head. */
  inform(text: string): void
  answer(text: string, framing: Framing): BodyWriter
  giveAway(text: string): ByteStream
}

export class Http1Exchange implements Exchange {
  readonly head: ParsedRequest
  readonly body: BodyReader
  onAbort: (() => void) | undefined
  onDone: (() => void) | undefined
  readonly #incoming: IncomingBody | undefined
  readonly #owner: ExchangeOwner
  readonly #headBytes: number
  readonly #sentBefore: number
  #sent: number | undefined
  #isAnswered = false
  /** The answer is complete, or the visitor is gone. */
  #isOver = false
  /** Whether the visitor waits for a 100 before it sends the body. */
  #awaitsContinue: boolean
  #endsConnection = false

  constructor(
    head: ParsedRequest,
    { incoming, headBytes, owner }: { incoming: IncomingBody | undefined; headBytes: number; owner: ExchangeOwner },
  ) {
    this.head = head
    this.body = incoming ?? noBody
    this.#incoming = incoming
    this.#owner = owner
    this.#headBytes = headBytes
    this.#sentBefore = owner.sent()
    this.#awaitsContinue = head.expectsContinue && incoming !== undefined
  }

  /** Bytes of the request on the wire so far, its head included. */
  get bytesReceived(): number {
    return this.#headBytes + (this.#incoming?.received ?? 0)
  }

  /** Bytes of the answer so far, its head included. */
  get bytesSent(): number {
    return (this.#sent ?? this.#owner.sent()) - this.#sentBefore
  }

  /**
   * Whether the visitor still waits for a 100. Such a visitor may skip the body, and its next request would pass for the body.
   */
  get isLeftWaiting(): boolean {
    return this.#awaitsContinue && this.#incoming?.hasBegun === false
  }

  inform(status: number, headers: HeaderList): void {
    if (status < 100 || status > 199 || status === 101) throw new Error('not an interim response')
    if (this.#isAnswered || this.#isOver || this.head.isOld) return
    if (status === 100) {
      // Only a visitor that expects a 100 can handle one.
      if (!this.#awaitsContinue) return
      this.#awaitsContinue = false
    }
    this.#owner.inform(interimHead(status, headers))
  }

  /** A reader wants the body. */
  proceed(): void {
    if (!this.isLeftWaiting || this.#isAnswered || this.#isOver) return
    this.#awaitsContinue = false
    this.#owner.inform('HTTP/1.1 100 Continue\r\n\r\n')
  }

  endConnection(): void {
    this.#endsConnection = true
  }

  ignoreBody(): void {
    const incoming = this.#incoming
    // What has arrived may be all of it.
    if (incoming?.isRead === false) incoming.discard(new Error('nobody reads the body'))
    // More may follow than is dropped to keep the connection.
    if (incoming?.isEndKnown === false) this.#endsConnection = true
  }

  hangUp(): void {
    this.#owner.hangUp()
  }

  respond(head: ResponseHead): BodyWriter {
    if (head.status < 200) throw new Error('not a final response')
    this.#beginAnswer()
    const { isOld } = this.head
    const { announced, framing } = frame(head, this.head)
    const closes = this.#owner.closesAfterAnswer(this.#endsConnection || framing === 'close')
    const text = responseHead(head, { body: announced, closes, isOld })
    this.#isAnswered = true
    return this.#owner.answer(text, framing)
  }

  upgrade(head: ResponseHead): ByteStream {
    const { upgrade } = this.head
    if (upgrade === undefined) throw new Error('the visitor did not ask for another protocol')
    this.#beginAnswer()
    const text = upgradeHead(head, upgrade)
    this.#isAnswered = true
    return this.#owner.giveAway(text)
  }

  /** After the last byte of the answer. */
  finish(): void {
    this.cease()
    this.onDone?.()
  }

  /** The visitor is gone. */
  abort(): void {
    if (this.#isOver) return
    this.cease()
    this.onAbort?.()
  }

  /** Ends the exchange without callbacks. */
  cease(): void {
    this.#isOver = true
    this.#sent = this.#owner.sent()
  }

  #beginAnswer(): void {
    if (this.#isAnswered) throw new Error('an exchange is answered once')
  }
}

/** RFC 9112 §6.3: some responses have no body whatever they announce. */
function frame(
  { status, body }: ResponseHead,
  { method, isOld }: ParsedRequest,
): { announced: BodyLength; framing: Framing } {
  if (status === 204) return { announced: 'none', framing: 'none' }
  if (method === 'HEAD' || status === 304) return { announced: body === 'unknown' ? 'none' : body, framing: 'none' }
  if (body === 'unknown')
    return isOld ? { announced: 'none', framing: 'close' } : { announced: body, framing: 'chunked' }
  const length = body === 'none' ? 0 : body
  return { announced: length, framing: length }
}
