/** One request of a visitor and its answer, on an HTTP/2 stream. */
import { randomBytes } from 'node:crypto'
import { constants, type ServerHttp2Stream } from 'node:http2'
import type { ByteStream } from '../../../lib/bytes/byte-stream.ts'
import type { HeaderList } from '../../../lib/http/header-list.ts'
import type { BodyReader, BodyWriter, Exchange, RequestHead, ResponseHead } from '../../requests/http-exchange.ts'
import { noBody } from '../http1/incoming-body.ts'
import { fieldObject, writeFields } from './raw-headers.ts'
import { StreamReader, StreamWriter } from './stream-body.ts'
import { StreamBytes } from './stream-bytes.ts'

/** RFC 6455 §4.1: of the key that a WebSocket has over HTTP/1.1. */
const KEY_BYTES = 16

interface Http2ExchangeOptions {
  readonly stream: ServerHttp2Stream
  readonly head: RequestHead
  /** A callback threw. */
  readonly onBroken: (cause: unknown) => void
}

export class Http2Exchange implements Exchange {
  readonly head: RequestHead
  readonly body: BodyReader
  onAbort: (() => void) | undefined
  onDone: (() => void) | undefined
  readonly #stream: ServerHttp2Stream
  readonly #reader: StreamReader
  readonly #onBroken: (cause: unknown) => void
  /** Whether the visitor waits for a 100 before it sends the body. */
  #awaitsContinue: boolean
  #isAnswered = false
  #endsConnection = false
  #isWhole = false
  /** The stream belongs to whoever has its bytes, and is no longer a request. */
  #isUpgraded = false
  /** RFC 8441 §5.1: the visitor needs no key. Some send one all the same, and check the answer to it. */
  #isKeyOurs = false

  constructor({ stream, head, onBroken }: Http2ExchangeOptions) {
    this.head = head
    this.#stream = stream
    this.#onBroken = onBroken
    this.#awaitsContinue = head.body !== 'none' && head.headers.get('expect')?.toLowerCase() === '100-continue'
    this.#reader = new StreamReader(stream, { length: head.body, onAwaited: () => this.#proceed(), onBroken })
    this.body = head.body === 'none' ? noBody : this.#reader
    if (head.upgrade !== undefined) this.#addKey()
    // There is no body; but a stream that is not read to its end never closes.
    else if (head.body === 'none') stream.resume()
    stream.on('aborted', () => this.#drop())
    stream.on('close', () => this.#closed())
  }

  inform(status: number, headers: HeaderList): void {
    if (status < 100 || status > 199 || status === 101) throw new Error('not an interim response')
    if (this.#isAnswered || this.#isGone) return
    if (status === 100) {
      // Only a visitor that expects a 100 can handle one.
      if (!this.#awaitsContinue) return
      this.#awaitsContinue = false
    }
    this.#stream.additionalHeaders({ ...fieldObject(headers), ':status': status })
  }

  endConnection(): void {
    this.#endsConnection = true
  }

  /** The rest affects this stream alone. */
  ignoreBody(): void {}

  hangUp(): void {
    this.#stream.session?.destroy()
  }

  respond(head: ResponseHead): BodyWriter {
    if (this.#isAnswered) throw new Error('an exchange is answered once')
    if (head.status < 200) throw new Error('not a final response')
    const status = sendable(head.status)
    const hasNone = this.head.method === 'HEAD' || status === 204 || status === 304
    // For HEAD, the length that a GET would have, where it is known.
    const body = hasNone && head.body === 'unknown' ? 'none' : status === 204 ? 'none' : head.body
    const raw = writeFields([':status', String(status)], head.headers, body)
    const isEmpty = hasNone || head.body === 'none' || head.body === 0
    this.#isAnswered = true
    // A response with a length has no trailers.
    const hasTrailers = head.body === 'unknown'
    if (!this.#isGone) this.#stream.respond(raw, isEmpty ? { endStream: true } : { waitForTrailers: hasTrailers })
    return new StreamWriter(this.#stream, {
      isEmpty,
      hasTrailers,
      abortCode: constants.NGHTTP2_INTERNAL_ERROR,
      onSent: () => this.#answered(),
    })
  }

  upgrade(head: ResponseHead): ByteStream {
    if (this.head.upgrade === undefined) throw new Error('the visitor did not ask for another protocol')
    if (this.#isAnswered) throw new Error('an exchange is answered once')
    const headers = head.headers.clone()
    if (this.#isKeyOurs) headers.remove('sec-websocket-accept')
    const raw = writeFields([':status', '200'], headers, 'none')
    this.#isAnswered = this.#isUpgraded = true
    if (!this.#isGone) this.#stream.respond(raw)
    return new StreamBytes(this.#stream)
  }

  /** Services want a key. */
  #addKey(): void {
    const { headers } = this.head
    this.#isKeyOurs = !headers.has('sec-websocket-key')
    if (this.#isKeyOurs) headers.add('Sec-WebSocket-Key', randomBytes(KEY_BYTES).toString('base64'))
  }

  get #isGone(): boolean {
    return this.#stream.destroyed || this.#stream.closed
  }

  /** A reader wants the body. */
  #proceed(): void {
    if (!this.#awaitsContinue || this.#isAnswered || this.#isGone) return
    this.#awaitsContinue = false
    this.#stream.additionalHeaders({ ':status': 100 })
  }

  #answered(): void {
    this.#isWhole = true
    // RFC 9113 §6.8: GOAWAY; requests under way are still answered.
    if (this.#endsConnection) this.#stream.session?.close()
    // RFC 9113 §8.1: the rest of a request that is answered already is not waited for.
    if ((this.head.body === 'none' && this.head.upgrade === undefined) || this.#reader.isWhole) return
    this.#drop()
    this.#stream.close(constants.NGHTTP2_NO_ERROR)
  }

  /** Discards the rest of the body: a stream with unread bytes does not close. */
  #drop(): void {
    this.#reader.cut()
    this.#stream.resume()
  }

  #closed(): void {
    if (this.#isUpgraded) return
    this.#reader.cut()
    const { rstCode, writableFinished } = this.#stream
    // Everything was sent, so the visitor has the answer, whatever code the stream closes with.
    const isDone = this.#isWhole && (rstCode === constants.NGHTTP2_NO_ERROR || writableFinished)
    try {
      if (isDone) this.onDone?.()
      else this.onAbort?.()
    } catch (cause) {
      this.#onBroken(cause)
    }
  }
}

/** Node sends no status above 599; RFC 9110 §15: clients treat one as a 500. */
function sendable(status: number): number {
  return status > 599 ? 500 : status
}
