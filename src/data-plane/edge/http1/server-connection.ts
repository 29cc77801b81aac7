/**
 * A visitor's connection that speaks HTTP/1.1: delivers requests one at a time, and keeps them apart on the wire.
 *
 * One thing: the states of one connection, which share every field.
 */
import { type ByteStream, keepBytes } from '../../../lib/bytes/byte-stream.ts'
import { ownTurn } from '../../../lib/threads/others-turn.ts'
import { type VisitorErrorCode, visitorErrors } from '../../../model/visitor-errors.ts'
import type { BodyWriter, ResponseHead } from '../../requests/http-exchange.ts'
import type { Deadline, Sweep } from '../deadlines.ts'
import { TurnShare } from '../turn-share.ts'
import { LengthDecoder } from './body-decoder.ts'
import { BodyEncoder, type EncoderOwner, type Framing } from './body-encoder.ts'
import {
  AHEAD_BYTES,
  DRAIN_BYTES,
  DRAIN_MS,
  defaultLimits,
  FIRST_REQUEST_MS,
  HALF_CLOSED_MS,
  type Http1Limits,
  LINGER_BYTES,
} from './bounds.ts'
import { ChunkedDecoder } from './chunked-decoder.ts'
import { Flow } from './flow.ts'
import { HeadFault, type HeadFaultKind } from './head-fault.ts'
import { HeadReader } from './head-reader.ts'
import { responseHead } from './head-writer.ts'
import { type BodyOwner, IncomingBody } from './incoming-body.ts'
import { type ParsedRequest, parseRequestHead } from './request-head.ts'
import { Http1Outbox } from './response-outbox.ts'
import { type ExchangeOwner, Http1Exchange } from './server-exchange.ts'
import { UpgradedStream } from './upgraded-stream.ts'

interface BadAnswer {
  /** Its length is that of `body`. */
  readonly head: ResponseHead
  readonly body: Buffer
}

export interface Http1ConnectionOptions {
  readonly stream: ByteStream
  readonly sweep: Sweep
  readonly limits?: Http1Limits
  /** The name in the TLS handshake. */
  readonly serverName?: string | undefined
  /** Handles a request; the next comes when this one is answered. A throw closes the connection. */
  readonly onExchange: (exchange: Http1Exchange) => void
  /** The answer to something that is not a request; the connection is closed after it. */
  readonly onBad: (code: VisitorErrorCode, what: string) => BadAnswer
  /** The connection is closed, upgraded or not. Called exactly once, and not before the constructor returns. */
  readonly onClosed?: () => void
  /** A callback threw; for the log. */
  readonly onBroken?: (cause: unknown) => void
}

/**
 * `head`: between requests, or inside a head. `exchange`: a request is being answered. `drain`: the same, while the
 * rest of its body is discarded. `linger`: our last byte is sent. `gone`: closed, or upgraded.
 */
type State = 'head' | 'exchange' | 'drain' | 'linger' | 'gone'

const codes: Readonly<Record<HeadFaultKind, VisitorErrorCode>> = {
  malformed: 'BAD_VISITOR_REQUEST',
  too_large: 'REQUEST_HEAD_TOO_LARGE',
  version: 'HTTP_VERSION_UNSUPPORTED',
  expectation: 'EXPECTATION_FAILED',
}

export class Http1Connection {
  readonly #options: Http1ConnectionOptions
  readonly #limits: Http1Limits
  readonly #stream: ByteStream
  readonly #sweep: Sweep
  readonly #deadline: Deadline
  readonly #reader: HeadReader
  readonly #out: Http1Outbox
  readonly #flow: Flow
  readonly #port: ExchangeOwner & BodyOwner & EncoderOwner
  #state: State = 'head'
  #exchange: Http1Exchange | undefined
  #encoder: BodyEncoder | undefined
  /** The body of the current request, until it is complete. */
  #incoming: IncomingBody | undefined
  /** Bytes after the current request: at most what the stream delivered at once. */
  #rest: Buffer | undefined
  #restAt = 0
  #dropped = 0
  /** Set when several requests came at once. */
  #share: TurnShare | undefined
  /** Reading heads, or waiting for another turn to do so. */
  #isPumping = false
  #isDraining = false
  /** Whether a request has begun on this connection. */
  #hasAsked = false
  /** Whether the answer announces that it is the last one. */
  #isLast = false
  #isVisitorDone = false
  /** Whether nobody has taken what the visitor sends for some seconds. */
  #isStalled = false
  #isBuilt = false

  constructor(options: Http1ConnectionOptions) {
    const { stream, sweep, limits = defaultLimits } = options
    this.#options = options
    this.#limits = limits
    this.#stream = stream
    this.#sweep = sweep
    this.#reader = new HeadReader(limits.headBytes)
    this.#out = new Http1Outbox(stream)
    this.#flow = new Flow(stream)
    this.#port = this.#makePort()
    this.#deadline = sweep.add({ expired: () => this.#expire() })
    this.#touch()
    stream.attach({
      data: (chunk) => this.#data(chunk),
      lent: (chunk) => this.#data(chunk),
      end: () => this.#end(),
      drain: () => this.#drained(),
      closed: (error) => this.#onClosed(error),
    })
    this.#isBuilt = true
  }

  /** Closed or upgraded: no more requests are read. */
  get isGone(): boolean {
    return this.#state === 'gone'
  }

  /** For how long nobody has waited for anything here, in milliseconds; undefined while somebody does. */
  get idleMs(): number | undefined {
    // Its visitor may have left, which nothing shows.
    if (this.#isStalled) return Number.POSITIVE_INFINITY
    const isWaiting = this.#state === 'head' || this.#state === 'linger'
    if (!isWaiting || this.#rest !== undefined || this.#out.isBlocked) return undefined
    const waitMs = this.#reader.isPartial ? this.#limits.headMs : this.#limits.idleMs
    return Math.max(0, this.#sweep.after(waitMs) - this.#deadline.at)
  }

  /** Nobody takes what the visitor sends: reads a little ahead, in case that it has left and the end follows. */
  readAhead(): void {
    this.#isStalled = this.#state === 'exchange' && this.#incoming?.wantsMore === false
    this.#settle()
  }

  /** Finishes requests that have begun, then closes. */
  drain(): void {
    this.#isDraining = true
    if (this.#state !== 'head' || this.#reader.isPartial || this.#rest !== undefined) return
    // A visitor that has just connected is about to send a request; one between requests expects a close.
    if (this.#hasAsked) this.#close()
    else this.#deadline.at = this.#sweep.after(Math.min(FIRST_REQUEST_MS, this.#limits.idleMs))
  }

  /** Closes at once, even if upgraded. */
  reset(): void {
    if (this.#state === 'gone') this.#stream.reset()
    else this.#lose(new Error('we reset the connection'))
  }

  /** Takes lent bytes. */
  #data(chunk: Buffer): void {
    switch (this.#state) {
      case 'head':
        this.#hasAsked = true
        this.#hold(chunk)
        this.#pump()
        break
      case 'exchange':
        if (this.#incoming) {
          this.#touch()
          this.#incoming.accept(chunk, 0)
        } else this.#hold(chunk)
        break
      case 'drain':
        this.#dropped += chunk.length
        this.#incoming?.accept(chunk, 0)
        if (this.#state === 'drain' && this.#dropped > DRAIN_BYTES) this.#close()
        break
      case 'linger':
        this.#dropped += chunk.length
        if (this.#dropped > LINGER_BYTES) this.#lose(new Error('the visitor does not stop'))
        break
      case 'gone':
        return
    }
    // Copies the bytes not yet used.
    this.#incoming?.keep(chunk.buffer)
    if (this.#rest && this.#rest.buffer === chunk.buffer) {
      this.#rest = keepBytes(this.#rest.subarray(this.#restAt))
      this.#restAt = 0
    }
    this.#settle()
  }

  /** The visitor has ended its side. */
  #end(): void {
    this.#isVisitorDone = true
    if (this.#state === 'exchange') this.#endWithin()
    else if (this.#state === 'head' || this.#state === 'drain') this.#close()
  }

  #endWithin(): void {
    if (this.#incoming) this.#lose(new Error('the visitor ended the connection within a request'))
    // The visitor either reads the answer that has begun, or shows by not reading that it is gone.
    else if (this.#encoder) this.#touch()
    else {
      // D69: most visitors that do this are gone. Answers to earlier requests are still sent.
      const exchange = this.#exchange
      this.#close()
      this.#guard(() => exchange?.abort())
    }
  }

  #drained(): void {
    this.#out.drained()
    if (this.#state === 'exchange') this.#touch()
    this.#guard(() => this.#encoder?.drained())
    this.#pump()
    this.#settle()
  }

  #expire(): void {
    switch (this.#state) {
      case 'head':
        if (this.#out.isBlocked) this.#lose(new Error('the visitor does not read'))
        else if (this.#reader.isPartial) this.#refuse('REQUEST_HEAD_TIMEOUT', 'a head that did not come to its end')
        else this.#close()
        break
      case 'exchange': {
        // A request that waits for the upstream may keep waiting.
        const isAwaited = this.#incoming?.isRead === true && this.#incoming.wantsMore
        if (this.#isVisitorDone || this.#out.isBlocked || isAwaited) this.#lose(new Error('the visitor is too slow'))
        else this.#touch()
        break
      }
      case 'drain':
        this.#close()
        break
      case 'linger':
        this.#lose(new Error('the visitor does not close'))
        break
      case 'gone':
    }
  }

  #hold(chunk: Buffer): void {
    if (this.#rest) chunk = Buffer.concat([this.#rest.subarray(this.#restAt), chunk])
    this.#rest = chunk
    this.#restAt = 0
  }

  /** Reads heads from the bytes so far, in a loop: a request may be answered before `onExchange` returns. */
  #pump(): void {
    if (this.#isPumping) return
    this.#isPumping = true
    // A visitor that sends requests without reading the answers gets no further ones.
    while (this.#state === 'head' && this.#rest && !this.#out.isBlocked) {
      if (this.#share?.isSpent) {
        void this.#pumpLater()
        return
      }
      this.#readHead(this.#rest, this.#restAt)
    }
    this.#isPumping = false
  }

  /** Other connections first. */
  async #pumpLater(): Promise<void> {
    await ownTurn()
    this.#isPumping = false
    this.#pump()
    this.#settle()
  }

  #readHead(chunk: Buffer, at: number): void {
    const reader = this.#reader
    this.#rest = undefined
    const wasPartial = reader.isPartial
    const isWhole = reader.take(chunk, at)
    if (isWhole === false) {
      if (!wasPartial) this.#deadline.at = this.#sweep.after(this.#limits.headMs)
      return
    }
    const { serverName } = this.#options
    const rules = { maxHeaders: this.#limits.headers, serverName }
    const head = isWhole === true ? parseRequestHead(reader, rules) : isWhole
    const headBytes = reader.text.length + 2
    reader.clear()
    if (head instanceof HeadFault) {
      this.#refuse(codes[head.kind], head.what)
      return
    }
    if (reader.next < chunk.length) {
      this.#rest = chunk
      this.#restAt = reader.next
      this.#share ??= new TurnShare(this.#sweep)
      this.#share.note()
    }
    this.#begin(head, headBytes)
  }

  #begin(head: ParsedRequest, headBytes: number): void {
    const incoming = this.#expectBody(head)
    const exchange = new Http1Exchange(head, { incoming, headBytes, owner: this.#port })
    this.#state = 'exchange'
    this.#incoming = incoming
    this.#exchange = exchange
    this.#isLast = head.closes
    this.#touch()
    try {
      this.#options.onExchange(exchange)
    } catch (cause) {
      this.#break(cause)
    }
  }

  #expectBody({ body }: ParsedRequest): IncomingBody | undefined {
    if (body === 'none' || body === 0) return undefined
    const decoder = body === 'unknown' ? new ChunkedDecoder({ dropsUnderscores: true }) : new LengthDecoder(body)
    const incoming = new IncomingBody(decoder, this.#port)
    if (this.#rest) incoming.accept(this.#rest, this.#restAt)
    this.#rest = undefined
    return incoming
  }

  #makePort(): ExchangeOwner & BodyOwner & EncoderOwner {
    const out = this.#out
    // No getters: an object with one has a shape of its own, which makes every call slower.
    return {
      sent: () => out.bytes,
      closesAfterAnswer: (isWanted) => this.#decideWhetherLast(isWanted),
      hangUp: () => this.#lose(new Error('we ended the connection')),
      inform: (text) => out.send(text),
      answer: (text, framing) => this.#answer(text, framing),
      giveAway: (text) => this.#giveAway(text),
      bodyAwaited: () => this.#exchange?.proceed(),
      bodyPaced: () => this.#settle(),
      bodyWhole: (rest) => this.#bodyWhole(rest),
      bodyLost: (error) => this.#lose(error),
      bodyMalformed: (fault) => this.#bodyMalformed(fault),
      bodyBroken: (cause) => this.#break(cause),
      bodyMoved: () => this.#touch(),
      bodySent: () => this.#answered(),
      bodyCut: (reason) => this.#cutShort(reason),
    }
  }

  #decideWhetherLast(isWanted = false): boolean {
    this.#isLast ||=
      isWanted ||
      this.#isVisitorDone ||
      (this.#isDraining && this.#rest === undefined) ||
      this.#exchange?.isLeftWaiting === true ||
      (this.#incoming?.left ?? 0) > DRAIN_BYTES
    return this.#isLast
  }

  #answer(text: string, framing: Framing): BodyWriter {
    const encoder = new BodyEncoder(framing, this.#out, this.#port)
    if (this.#state === 'exchange') {
      this.#out.text(text, typeof framing === 'number' ? framing : 0)
      this.#encoder = encoder
    } else encoder.close()
    return encoder
  }

  /** The last byte of the answer was written. */
  #answered(): void {
    const exchange = this.#exchange
    this.#encoder = undefined
    try {
      exchange?.finish()
    } catch (cause) {
      this.#break(cause)
    }
    if (this.#state !== 'exchange') return
    const isLast = this.#decideWhetherLast()
    const incoming = this.#incoming
    this.#exchange = undefined
    if (isLast) {
      this.#close()
      this.#guard(() => incoming?.fail(answeredEarly()))
    } else if (incoming) {
      this.#state = 'drain'
      this.#dropped = 0
      this.#deadline.at = this.#sweep.after(DRAIN_MS)
      this.#guard(() => incoming.discard(answeredEarly()))
      this.#settle()
    } else this.#next()
  }

  #next(): void {
    this.#state = 'head'
    this.#touch()
    this.#pump()
    this.#settle()
  }

  #bodyWhole(rest: Buffer | undefined): void {
    if (this.#state !== 'exchange' && this.#state !== 'drain') return
    this.#incoming = undefined
    if (rest) this.#hold(rest)
    if (this.#state === 'drain') this.#next()
  }

  #bodyMalformed({ what }: HeadFault): void {
    if (this.#state === 'drain') this.#close()
    else if (this.#encoder) this.#lose(new Error(what))
    else this.#refuse('BAD_VISITOR_REQUEST', what)
  }

  #cutShort(reason: 'aborted' | 'wrong_length'): void {
    if (reason === 'wrong_length') this.#break(new Error('an answer is not as long as it was announced'))
    else {
      // The caller aborted it, and needs no callback.
      this.#exchange?.cease()
      this.#lose(new Error('the answer was given up'))
    }
  }

  #giveAway(text: string): ByteStream {
    const rest = this.#rest && keepBytes(this.#rest.subarray(this.#restAt))
    if (this.#state === 'exchange') {
      this.#out.send(text)
      this.#exchange?.cease()
      this.#leave()
      const onClosed = (): void => this.#tellClosed()
      return new UpgradedStream(this.#stream, { rest, isEnded: this.#isVisitorDone, onClosed })
    }
    this.#lose(new Error('the visitor is gone'))
    return new UpgradedStream(this.#stream, { rest: undefined, isEnded: false })
  }

  /** Answers something that is not a request, and closes: bytes that follow it cannot be trusted. */
  #refuse(code: VisitorErrorCode, what: string): void {
    const { text, body } = this.#badAnswer(code, what)
    this.#guard(() => this.#exchange?.abort())
    if (this.#state === 'gone') return
    this.#out.text(text, body.length)
    this.#out.write(body)
    this.#close()
  }

  #badAnswer(code: VisitorErrorCode, what: string): { text: string; body: Buffer } {
    try {
      const { head, body } = this.#options.onBad(code, what)
      return { text: responseHead(head, { body: body.length, closes: true }), body }
    } catch (cause) {
      this.#options.onBroken?.(cause)
      const { status } = visitorErrors[code]
      return { text: `HTTP/1.1 ${status} \r\nContent-Length: 0\r\nConnection: close\r\n\r\n`, body: Buffer.alloc(0) }
    }
  }

  /** Ends our side, and keeps reading until the visitor has seen that. */
  #close(): void {
    this.#state = 'linger'
    this.#exchange = this.#incoming = this.#rest = undefined
    this.#dropped = 0
    this.#out.flush()
    // Bytes still in the system's buffers take as long as the visitor takes to read them.
    this.#deadline.at = this.#sweep.after(this.#limits.idleMs)
    this.#stream.end()
    this.#settle()
  }

  #break(cause: unknown): void {
    this.#options.onBroken?.(cause)
    this.#lose(new Error('the handler of a connection failed', { cause }))
  }

  #lose(error: Error): void {
    if (this.#state === 'gone') return
    // Earlier answers may be complete but not yet sent.
    this.#out.flush()
    this.#onClosed(error)
    this.#stream.reset()
  }

  /** The stream is closed, or about to be. */
  #onClosed(error: Error | undefined): void {
    if (this.#state === 'gone') return
    const [exchange, incoming] = [this.#exchange, this.#incoming]
    this.#encoder?.close()
    this.#out.clear()
    this.#leave()
    this.#guard(() => incoming?.fail(error ?? new Error('the visitor closed the connection')))
    this.#guard(() => exchange?.abort())
    if (this.#isBuilt) this.#tellClosed()
    else queueMicrotask(() => this.#tellClosed())
  }

  #tellClosed(): void {
    this.#guard(() => this.#options.onClosed?.())
  }

  #leave(): void {
    this.#state = 'gone'
    this.#isStalled = false
    this.#exchange = this.#incoming = this.#encoder = this.#rest = undefined
    this.#sweep.remove(this.#deadline)
  }

  #touch(): void {
    this.#deadline.at = this.#sweep.after(this.#isVisitorDone ? HALF_CLOSED_MS : this.#limits.idleMs)
  }

  /** Lets the stream flow only while there is room for its bytes. */
  #settle(): void {
    if (this.#state === 'gone') return
    const wantsMore = this.#incoming?.wantsMore ?? true
    // What is read ahead waits in the body, which still wants none of it while its reader is paused.
    this.#isStalled &&= !wantsMore
    const isAhead = this.#isStalled && (this.#incoming?.waiting ?? 0) < AHEAD_BYTES
    this.#flow.set(this.#rest === undefined && (wantsMore || isAhead))
  }

  /** An error in a callback closes this connection and no other. */
  #guard(call: () => void): void {
    try {
      call()
    } catch (cause) {
      this.#break(cause)
    }
  }
}

function answeredEarly(): Error {
  return new Error('the request was answered before its body was whole')
}
