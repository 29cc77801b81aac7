/** A connection to an upstream that speaks HTTP/2 without TLS: many requests at once, each on a stream of its own. */
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type ClientSessionOptions,
  connect,
  constants,
} from 'node:http2'
import { ByteDuplex } from '../../../lib/bytes/byte-duplex.ts'
import type { ByteStream } from '../../../lib/bytes/byte-stream.ts'
import {
  type BodyLength,
  type BodyWriter,
  type ResponseHead,
  type UpstreamConnection,
  UpstreamFault,
  type UpstreamRequest,
  type UpstreamSending,
  type UpstreamSink,
} from '../../requests/http-exchange.ts'
import type { Sweep } from '../deadlines.ts'
import { INTERIM_RESPONSES, RESPONSE_HEAD_BYTES, RESPONSE_HEADERS, UPSTREAM_IDLE_MS } from '../http1/bounds.ts'
import { noBody } from '../http1/incoming-body.ts'
import { isIdempotent } from '../idempotent.ts'
import { PSEUDO_HEADERS, STREAM_WINDOW_BYTES, sessionBounds } from './bounds.ts'
import { watchIdle } from './idle-watch.ts'
import { readFields, writeFields } from './raw-headers.ts'
import { StreamReader, StreamWriter } from './stream-body.ts'

/**
 * Headers of a request to an upstream, in bytes: the most that an operator can allow visitors, and as much again for
 * what modules add.
 */
const SENT_HEAD_BYTES = 256 * 1024

/** Concurrent requests on one connection to an upstream, if it allows as many. */
const UPSTREAM_STREAMS = 256

/**
 * Cancelled requests on one connection to an upstream before another connection is used. Upstreams close a connection
 * with too many of them, and with it the requests of other visitors: Envoy after 500, Node after 1000.
 */
const UPSTREAM_CANCELS = 200

interface Http2UpstreamOptions {
  readonly stream: ByteStream
  readonly sweep: Sweep
  /** How long it is kept without a request, in milliseconds. */
  readonly idleMs?: number
}

export class Http2Upstream {
  /** Called once. */
  onClosed: (() => void) | undefined
  /** Resolves when its capacity is known, even if it has none. */
  readonly ready: Promise<void>
  readonly #duplex: ByteDuplex
  readonly #session: ClientHttp2Session
  #limit = UPSTREAM_STREAMS
  #open = 0
  #cancelled = 0

  constructor({ stream, sweep, idleMs = UPSTREAM_IDLE_MS }: Http2UpstreamOptions) {
    const duplex = new ByteDuplex(stream)
    // HTTP/2 connections are never half-open: an upstream that ends its side is gone.
    duplex.allowHalfOpen = false
    const session = connect('http://upstream', { ...sessionOptions, createConnection: () => duplex })
    this.#session = session
    this.#duplex = duplex
    // Errors of a connection end it; `close` follows.
    session.on('error', () => {})
    this.ready = new Promise((resolve) => {
      session.on('remoteSettings', ({ maxConcurrentStreams }) => {
        this.#limit = Math.min(maxConcurrentStreams ?? UPSTREAM_STREAMS, UPSTREAM_STREAMS)
        resolve()
      })
      session.once('close', resolve)
    })
    // After GOAWAY the upstream accepts no more requests; those under way may finish.
    session.on('goaway', () => this.close())
    const onIdle = (): void => {
      if (this.#open === 0) this.close()
    }
    watchIdle({ session, connection: duplex, moved: () => duplex.moved, sweep, idleMs, onIdle })
    session.on('close', () => this.onClosed?.())
  }

  /** Whether another request may start. */
  get hasRoom(): boolean {
    return !this.isClosed && this.#open < this.#limit
  }

  get isClosed(): boolean {
    return this.#session.closed || this.#session.destroyed
  }

  /** A connection for one request, which holds a slot until it closes. */
  connection(): UpstreamConnection {
    this.#open++
    return new Http2UpstreamStream({
      session: this.#session,
      onCancelled: () => {
        if (++this.#cancelled >= UPSTREAM_CANCELS) this.close()
      },
      onClosed: () => this.#open--,
      isBroken: () => this.#duplex.isBroken,
    })
  }

  /** Accepts no more requests, and closes after the last. */
  close(): void {
    if (!this.isClosed) this.#session.close()
  }
}

const sessionOptions: ClientSessionOptions = {
  ...sessionBounds,
  settings: {
    enablePush: false,
    initialWindowSize: STREAM_WINDOW_BYTES,
    maxHeaderListSize: RESPONSE_HEAD_BYTES,
  },
  maxHeaderListPairs: RESPONSE_HEADERS + PSEUDO_HEADERS,
  maxSendHeaderBlockLength: SENT_HEAD_BYTES,
  maxReservedRemoteStreams: 0,
}

interface StreamOwner {
  readonly session: ClientHttp2Session
  /** A request was cancelled. */
  onCancelled(): void
  onClosed(): void
  /** Whether the connection broke, so that the codes of its streams mean nothing. */
  isBroken(): boolean
}

/** One request and its answer. */
class Http2UpstreamStream implements UpstreamConnection {
  onChange: (() => void) | undefined
  isClosed = false
  readonly #owner: StreamOwner
  #stream: ClientHttp2Stream | undefined
  #sink: UpstreamSink | undefined
  #method = ''

  constructor(owner: StreamOwner) {
    this.#owner = owner
  }

  get isFree(): boolean {
    return this.#stream === undefined && !this.isClosed
  }

  send({ method, target, headers, body }: UpstreamRequest, sink: UpstreamSink): UpstreamSending {
    if (!this.isFree) throw new Error('a stream carries one request')
    const authority = headers.get('host') ?? ''
    // Trailers are forwarded, and some services speak gRPC only to clients that announce it.
    const own = [':method', method, ':scheme', 'http', ':authority', authority, ':path', target, 'te', 'trailers']
    const raw = writeFields(own, headersWithoutHost(headers), body === 'none' ? 'none' : body)
    const isEmpty = body === 'none' || body === 0
    const hasTrailers = body === 'unknown'
    this.#sink = sink
    this.#method = method
    let stream: ClientHttp2Stream
    try {
      stream = this.#owner.session.request(raw, { endStream: isEmpty, waitForTrailers: hasTrailers })
    } catch (cause) {
      queueMicrotask(() => this.#lost(cause))
      return { body: nowhere(), cancel: () => this.close() }
    }
    this.#stream = stream
    this.#listen(stream)
    const writer = new StreamWriter(stream, { isEmpty, hasTrailers, abortCode: constants.NGHTTP2_CANCEL })
    return { body: writer, cancel: () => this.close() }
  }

  close(): void {
    this.#sink = undefined
    if (this.#stream) this.#stream.close(constants.NGHTTP2_CANCEL)
    else this.#finish()
  }

  #listen(stream: ClientHttp2Stream): void {
    const onBroken = (): void => stream.close(constants.NGHTTP2_CANCEL)
    let error: Error | undefined
    stream.on('error', (cause: Error) => {
      error = cause
    })
    let interims = 0
    stream.on('headers', (_headers, _flags, raw?: string[]) => {
      const { pseudo, headers } = readFields(raw ?? [])
      const status = Number(pseudo.get(':status'))
      // RFC 9113 §8.6: there is no 101 in HTTP/2.
      if (status === 101 || ++interims > INTERIM_RESPONSES) {
        const sink = this.#sink
        this.close()
        sink?.failed(new UpstreamFault('invalid', 'too many interim responses, or a 101'))
      } else this.#sink?.inform(status, headers)
    })
    stream.on('response', (_headers, flags, raw?: string[]) => {
      const sink = this.#sink
      this.#sink = undefined
      const isEnded = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0
      const head = readResponse(raw ?? [], { method: this.#method, isEnded })
      // A stream that is not read to its end never closes.
      if (isEnded) stream.resume()
      sink?.respond(head, isEnded ? noBody : new StreamReader(stream, { length: head.body, onBroken }))
    })
    stream.on('close', () => {
      const sink = this.#sink
      this.#sink = undefined
      sink?.failed(faultOf(stream, this.#method, { cause: error, isBroken: this.#owner.isBroken() }))
      if (stream.rstCode === constants.NGHTTP2_CANCEL) this.#owner.onCancelled()
      this.#finish()
    })
  }

  /** The connection closed before the request was sent. */
  #lost(cause: unknown): void {
    const sink = this.#sink
    this.#sink = undefined
    sink?.failed(new UpstreamFault('closed', 'the connection was closed', { isUntouched: true, cause }))
    this.#finish()
  }

  #finish(): void {
    if (this.isClosed) return
    this.isClosed = true
    this.#owner.onClosed()
    this.onChange?.()
  }
}

function nowhere(): BodyWriter {
  return { write: () => true, end() {}, abort() {}, onDrain: undefined }
}

function headersWithoutHost(headers: UpstreamRequest['headers']): UpstreamRequest['headers'] {
  const rest = headers.clone()
  rest.remove('host')
  return rest
}

function readResponse(raw: readonly string[], { method, isEnded }: { method: string; isEnded: boolean }): ResponseHead {
  const { pseudo, headers, contentLength, hasTrailer } = readFields(raw)
  const status = Number(pseudo.get(':status'))
  let body: BodyLength = contentLength ?? (isEnded ? 'none' : 'unknown')
  // With a length there could be no trailers, but some are announced.
  if (hasTrailer && !isEnded && method !== 'HEAD') body = 'unknown'
  return { status, reason: '', headers, body }
}

function faultOf(
  stream: ClientHttp2Stream,
  method: string,
  { cause, isBroken }: { readonly cause: Error | undefined; readonly isBroken: boolean },
): UpstreamFault {
  // RFC 9113 §8.7: a refused stream was not processed. But the library reports the same for a stream that it refused itself,
  // since the head of the response is too large; then the upstream has processed the request.
  const isRefused = stream.rstCode === constants.NGHTTP2_REFUSED_STREAM && isIdempotent(method)
  // A stream without an id was never sent.
  const isUntouched = isRefused || stream.id === undefined
  const isClosed =
    isBroken || stream.rstCode === constants.NGHTTP2_NO_ERROR || stream.rstCode === constants.NGHTTP2_CANCEL
  const reason = isClosed ? 'closed' : 'invalid'
  return new UpstreamFault(reason, 'the stream ended without a response', { isUntouched, cause })
}
