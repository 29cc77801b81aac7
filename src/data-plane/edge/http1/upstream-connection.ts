/**
 * A connection to an upstream over HTTP/1.1: one request at a time, and kept only when its state is certain.
 *
 * One thing: the states of one connection, which share every field.
 */
import { type ByteStream, keepBytes } from '../../../lib/bytes/byte-stream.ts'
import {
  type UpstreamConnection,
  UpstreamFault,
  type UpstreamFaultOptions,
  type UpstreamFaultReason,
  type UpstreamRequest,
  type UpstreamSending,
  type UpstreamSink,
} from '../../requests/http-exchange.ts'
import type { Deadline, Sweep } from '../deadlines.ts'
import { EndlessDecoder, LengthDecoder } from './body-decoder.ts'
import { BodyEncoder, type EncoderOwner } from './body-encoder.ts'
import {
  INTERIM_RESPONSES,
  RESPONSE_HEAD_BYTES,
  RESPONSE_HEAD_MS,
  UPSTREAM_IDLE_MS,
  UPSTREAM_LINGER_MS,
  UPSTREAM_STALL_MS,
} from './bounds.ts'
import { ChunkedDecoder } from './chunked-decoder.ts'
import { Flow } from './flow.ts'
import { HeadFault } from './head-fault.ts'
import { HeadReader } from './head-reader.ts'
import { requestHead } from './head-writer.ts'
import { type BodyOwner, IncomingBody, noBody } from './incoming-body.ts'
import { type ParsedResponse, parseResponseHead, RESPONSE_BEGIN } from './response-head.ts'
import { Http1Outbox } from './response-outbox.ts'
import { UpgradedStream } from './upgraded-stream.ts'

const RESPONSE_BEGIN_BYTE = RESPONSE_BEGIN.charCodeAt(0)

interface Http1UpstreamOptions {
  readonly stream: ByteStream
  readonly sweep: Sweep
  /** How long the upstream may take to answer a complete request, in milliseconds; no limit by default. */
  readonly answerMs?: number
  /** How long it is kept without a request, in milliseconds. */
  readonly idleMs?: number
  /** A callback threw, which closes the connection; for the log. */
  readonly onBroken?: (cause: unknown) => void
}

/**
 * `idle`: free. `head`: waits for a response. `body`: reads its body. `answered`: the response is complete, the request
 * may not be. `linger`: our last byte is sent. `gone`: closed, or given away.
 */
type State = 'idle' | 'head' | 'body' | 'answered' | 'linger' | 'gone'

export class Http1Upstream implements UpstreamConnection {
  onChange: (() => void) | undefined
  readonly #stream: ByteStream
  readonly #sweep: Sweep
  readonly #answerMs: number
  readonly #idleMs: number
  readonly #deadline: Deadline
  readonly #reader = new HeadReader(RESPONSE_HEAD_BYTES)
  readonly #out: Http1Outbox
  readonly #flow: Flow
  readonly #onBroken: ((cause: unknown) => void) | undefined
  readonly #port: BodyOwner & EncoderOwner
  #state: State = 'idle'
  #request: UpstreamRequest | undefined
  #sink: UpstreamSink | undefined
  #encoder: BodyEncoder | undefined
  #incoming: IncomingBody | undefined
  /** Whether the connection has carried a response before. */
  #isKept = false
  /** Whether any byte has arrived since the request. */
  #isTouched = false
  #isSent = false
  #isReusable = true
  #interims = 0

  constructor(options: Http1UpstreamOptions) {
    const { stream, sweep, answerMs = Number.POSITIVE_INFINITY, idleMs = UPSTREAM_IDLE_MS, onBroken } = options
    this.#stream = stream
    this.#sweep = sweep
    this.#answerMs = answerMs
    this.#idleMs = idleMs
    // Upstreams may answer and close before they have the whole request; writing to a closed connection would lose the answer.
    this.#out = new Http1Outbox(stream, { isPrompt: true })
    this.#flow = new Flow(stream)
    this.#onBroken = onBroken
    this.#port = this.#makePort()
    this.#deadline = sweep.add({ expired: () => this.#guard(() => this.#expire()) })
    this.#deadline.at = sweep.after(idleMs)
    const take = (chunk: Buffer): void => {
      try {
        this.#data(chunk)
      } catch (cause) {
        this.#break(cause)
      }
    }
    stream.attach({
      data: take,
      lent: take,
      end: () => this.#guard(() => this.#end()),
      drain: () => this.#guard(() => this.#drained()),
      closed: (error) => this.#guard(() => this.#closed(error)),
    })
  }

  get isFree(): boolean {
    return this.#state === 'idle'
  }

  get isClosed(): boolean {
    return this.#state === 'linger' || this.#state === 'gone'
  }

  /** Throws when the request cannot be written, and leaves the connection unchanged. */
  send(request: UpstreamRequest, sink: UpstreamSink): UpstreamSending {
    if (this.#state !== 'idle') throw new Error('the connection is not free')
    const text = requestHead(request)
    const { body } = request
    const framing = body === 'unknown' ? 'chunked' : body === 'none' ? 0 : body
    const encoder = new BodyEncoder(framing, this.#out, this.#port)
    this.#state = 'head'
    this.#request = request
    this.#sink = sink
    this.#encoder = encoder
    this.#isTouched = this.#isSent = false
    this.#interims = 0
    this.#awaitAnswer()
    if (framing === 0) {
      this.#out.send(text)
      encoder.end()
    } else this.#out.text(text, typeof framing === 'number' ? framing : 0)
    const cancel = (): void => {
      if (this.#encoder === encoder) this.#giveUp()
    }
    return { body: encoder, cancel }
  }

  /** Closes the connection, and fails the request in progress. */
  close(): void {
    if (this.#state === 'idle') this.#finish()
    else this.#fail('closed', 'the connection was closed on our side')
  }

  /** Takes lent bytes. */
  #data(chunk: Buffer): void {
    switch (this.#state) {
      case 'head':
        this.#isTouched = true
        this.#readHeads(chunk)
        break
      case 'body':
        this.#incoming?.accept(chunk, 0)
        break
      case 'idle':
      case 'answered':
      case 'linger':
        // A response to no request; the next request must not get it.
        this.#abandon()
        break
      case 'gone':
        return
    }
    this.#incoming?.keep(chunk.buffer)
    this.#settle()
  }

  #end(): void {
    this.#isReusable = false
    if (this.#state === 'idle') this.#finish()
    else if (this.#state === 'head') this.#failClosed(undefined)
    else if (this.#state === 'body') this.#incoming?.acceptEnd()
    else if (this.#state === 'answered') this.#abandon()
  }

  #closed(error: Error | undefined): void {
    this.#isReusable = false
    if (this.#state === 'head') this.#failClosed(error)
    else {
      const incoming = this.#incoming
      this.#leave()
      incoming?.acceptEnd(error)
    }
  }

  #drained(): void {
    this.#out.drained()
    this.#moved()
    this.#encoder?.drained()
  }

  #expire(): void {
    if (this.#state === 'idle') this.#finish()
    else if (this.#state === 'linger') this.#abandon()
    else if (this.#reader.isPartial) this.#fail('timeout', 'the head of the response did not come to its end')
    else if (this.#state === 'head' && this.#isSent) this.#fail('timeout', 'no response came in time')
    else if (this.#out.isBlocked) this.#fail('timeout', 'the upstream does not read the request')
    else this.#moved()
  }

  /** Interim responses, and the head of the final one. */
  #readHeads(chunk: Buffer): void {
    const reader = this.#reader
    for (let at = 0; at < chunk.length && this.#state === 'head'; at = reader.next) {
      const wasPartial = reader.isPartial
      if (!wasPartial && chunk[at] !== RESPONSE_BEGIN_BYTE) {
        this.#failForeign()
        return
      }
      const isWhole = reader.take(chunk, at)
      if (isWhole === false) {
        const begin = reader.peek(RESPONSE_BEGIN.length)
        if (!RESPONSE_BEGIN.startsWith(begin)) this.#failForeign()
        else if (!wasPartial) this.#awaitRest()
        return
      }
      const method = this.#request?.method ?? ''
      const head = isWhole === true ? parseResponseHead(reader, { method }) : isWhole
      reader.clear()
      if (head instanceof HeadFault) {
        this.#fail(head.kind === 'too_large' ? 'head_too_large' : 'invalid', head.what)
        return
      }
      if (head.status >= 200) {
        this.#respond(head, chunk, reader.next)
        return
      }
      if (head.status === 101) {
        this.#upgrade(head, chunk.subarray(reader.next))
        return
      }
      if (++this.#interims > INTERIM_RESPONSES) this.#fail('invalid', 'interim responses without end')
      else {
        this.#awaitAnswer()
        this.#sink?.inform(head.status, head.headers)
      }
    }
  }

  #awaitAnswer(): void {
    this.#deadline.at = this.#sweep.after(this.#isSent ? this.#answerMs : UPSTREAM_STALL_MS)
  }

  /** A head has begun; a shorter remaining time still holds. */
  #awaitRest(): void {
    this.#deadline.at = Math.min(this.#deadline.at, this.#sweep.after(RESPONSE_HEAD_MS))
  }

  #respond(head: ParsedResponse, chunk: Buffer, at: number): void {
    const sink = this.#sink
    this.#isReusable &&= !head.closes
    // The reader of the body decides how long it may take.
    if (this.#isSent) this.#deadline.at = Number.POSITIVE_INFINITY
    else this.#awaitAnswer()
    const incoming = this.#expectBody(head)
    if (incoming === undefined) {
      // It is unknown what bytes after the response belong to.
      if (at < chunk.length) this.#isReusable = false
      this.#state = 'answered'
      this.#proceed()
      sink?.respond(head, noBody)
      return
    }
    this.#state = 'body'
    this.#incoming = incoming
    incoming.accept(chunk, at)
    sink?.respond(head, incoming)
  }

  #expectBody({ framing, body }: ParsedResponse): IncomingBody | undefined {
    if (framing === 'none' || body === 0) return undefined
    if (framing === 'until_close') return new IncomingBody(new EndlessDecoder(), this.#port)
    if (typeof body === 'number') return new IncomingBody(new LengthDecoder(body), this.#port)
    return new IncomingBody(new ChunkedDecoder({ dropsUnderscores: false }), this.#port)
  }

  #upgrade(head: ParsedResponse, rest: Buffer): void {
    const sink = this.#sink
    if (this.#request?.upgrade === undefined || !this.#isSent) {
      this.#fail('invalid', 'the upstream switched to a protocol that was not requested')
      return
    }
    const upgraded = new UpgradedStream(this.#stream, {
      rest: rest.length > 0 ? keepBytes(rest) : undefined,
      isEnded: false,
    })
    this.#leave()
    sink?.upgraded(head, upgraded)
  }

  #makePort(): BodyOwner & EncoderOwner {
    return {
      bodyAwaited() {},
      bodyPaced: () => this.#settle(),
      bodyWhole: (rest) => {
        if (rest) this.#isReusable = false
        if (this.#state !== 'body') return
        this.#state = 'answered'
        this.#incoming = undefined
        this.#proceed()
      },
      bodyLost: () => this.#abandon(),
      bodyMalformed: () => this.#abandon(),
      bodyBroken: (cause) => this.#break(cause),
      bodyMoved: () => this.#moved(),
      bodySent: () => {
        this.#isSent = true
        if (this.#state !== 'head') {
          this.#deadline.at = Number.POSITIVE_INFINITY
          this.#proceed()
        } else if (!this.#reader.isPartial) this.#awaitAnswer()
      },
      bodyCut: (reason) => {
        if (reason === 'aborted') this.#giveUp()
        else this.#fail('invalid', 'the request is not as long as it was announced')
      },
    }
  }

  /** The response is complete; the connection is free once the request is too. */
  #proceed(): void {
    if (this.#state !== 'answered') return
    if (!this.#isReusable) {
      if (this.#isSent) this.#finish()
      else this.#abandon()
      return
    }
    if (!this.#isSent) return
    this.#state = 'idle'
    this.#isKept = true
    this.#request = this.#sink = this.#encoder = undefined
    this.#deadline.at = this.#sweep.after(this.#idleMs)
    this.onChange?.()
  }

  #moved(): void {
    if (this.#request && !this.#isSent && !this.#reader.isPartial) this.#awaitAnswer()
  }

  #failClosed(cause: Error | undefined): void {
    const isUntouched = this.#isKept && !this.#isTouched
    const what = this.#isTouched ? 'the upstream closed within the head of its response' : 'the upstream closed'
    this.#fail('closed', what, { isUntouched, isSilent: !this.#isTouched, cause })
  }

  /**
   * The bytes are not a response. On a reused connection they belong to the response before, and say nothing about this request.
   */
  #failForeign(): void {
    const isUntouched = this.#isKept && this.#interims === 0
    this.#fail('invalid', 'the upstream does not speak HTTP/1.1', { isUntouched, cause: undefined })
  }

  #fail(reason: UpstreamFaultReason, what: string, options?: UpstreamFaultOptions): void {
    const fault = new UpstreamFault(reason, what, options)
    const [sink, incoming] = [this.#state === 'head' ? this.#sink : undefined, this.#incoming]
    this.#abandon()
    sink?.failed(fault)
    incoming?.fail(fault)
  }

  /** Ends our side; the upstream closes when it sees that. */
  #finish(): void {
    this.#state = 'linger'
    this.#forget()
    this.#deadline.at = this.#sweep.after(UPSTREAM_LINGER_MS)
    this.#stream.end()
    this.#settle()
    this.onChange?.()
  }

  /** The caller no longer needs the rest of the response. */
  #giveUp(): void {
    this.#incoming?.drop()
    this.#abandon()
  }

  /** Closes at once, and notifies only the owner. */
  #abandon(): void {
    if (this.#state === 'gone') return
    this.#leave()
    this.#stream.reset()
  }

  #leave(): void {
    if (this.#state === 'gone') return
    const wasClosed = this.isClosed
    this.#state = 'gone'
    this.#forget()
    this.#sweep.remove(this.#deadline)
    if (!wasClosed) this.onChange?.()
  }

  #forget(): void {
    this.#encoder?.close()
    this.#out.clear()
    this.#request = this.#sink = this.#encoder = this.#incoming = undefined
  }

  #guard(call: () => void): void {
    try {
      call()
    } catch (cause) {
      this.#break(cause)
    }
  }

  #break(cause: unknown): void {
    this.#onBroken?.(cause)
    this.#abandon()
  }

  #settle(): void {
    if (this.#state !== 'gone') this.#flow.set(this.#incoming?.wantsMore ?? true)
  }
}
