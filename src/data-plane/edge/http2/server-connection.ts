/** A visitor's connection over HTTP/2: delivers requests as they come, and bounds everything a visitor can do. */
import {
  constants,
  performServerHandshake,
  type ServerHttp2Session,
  type ServerHttp2Stream,
  type ServerOptions,
} from 'node:http2'
import type { Socket } from 'node:net'
import { ownTurn } from '../../../lib/threads/others-turn.ts'
import type { VisitorErrorCode } from '../../../model/visitor-errors.ts'
import type { RequestHead } from '../../requests/http-exchange.ts'
import { defaultLimits, FIRST_REQUEST_MS, type Http1Limits } from '../http1/bounds.ts'
import type { Http1ConnectionOptions } from '../http1/server-connection.ts'
import { TurnShare } from '../turn-share.ts'
import { PSEUDO_HEADERS, STREAM_WINDOW_BYTES, sessionBounds } from './bounds.ts'
import { watchIdle } from './idle-watch.ts'
import { readFields } from './raw-headers.ts'
import { Http2Exchange } from './server-exchange.ts'

/** Requests of one visitor that are under way at once. */
const CONCURRENT_STREAMS = 128

/**
 * Streams that a visitor may reset at once, and how many more per second. Leaving a page resets everything it was
 * loading; a client that keeps resetting makes us dial for nothing.
 */
const RESET_BURST = 256
const RESETS_PER_SECOND = 32

/** Malformed frames, and refused streams, before the connection is closed. */
const INVALID_FRAMES = 100
const REJECTED_STREAMS = 256

/**
 * What an operator may raise for the connections of visitors: the headers of a request, each counted with 32 bytes more, as RFC
 * 9113 §6.5.2 counts, and how long a connection may be without any traffic.
 */
type Http2Limits = Pick<Http1Limits, 'headBytes' | 'headers' | 'idleMs'>

export interface Http2ConnectionOptions
  extends Pick<Http1ConnectionOptions, 'sweep' | 'onBad' | 'onClosed' | 'onBroken'> {
  /** A TLS socket on which both sides agreed on `h2`, with nothing read yet. */
  readonly socket: Socket
  readonly limits?: Http2Limits
  /** Handles a request. A throw fails that request. */
  readonly onExchange: (exchange: Http2Exchange) => void
}

export class Http2Connection {
  /** Requests that are under way. */
  open = 0
  /** Those among them that ask for another protocol, or have it. */
  #upgrades = 0
  readonly #options: Http2ConnectionOptions
  readonly #maxHeadBytes: number
  /** Undefined when the visitor left before the session began. */
  readonly #session: ServerHttp2Session | undefined
  readonly #share: TurnShare
  /** Requests that wait for another turn, in order: not more than streams are open. */
  readonly #waiting: (() => void)[] = []
  #hasAsked = false
  #isDraining = false
  /** When the last request was over, in the time of the sweep. */
  #restsSince: number

  constructor(options: Http2ConnectionOptions) {
    const { socket, sweep, limits = defaultLimits, onClosed } = options
    this.#options = options
    this.#maxHeadBytes = limits.headBytes
    this.#share = new TurnShare(sweep)
    this.#restsSince = sweep.after(0)
    if (socket.destroyed) {
      // The library would wait for a close that has happened already.
      process.nextTick(() => onClosed?.())
      return
    }
    // HTTP/2 connections are never half-open: a visitor that ends its side is gone.
    socket.allowHalfOpen = false
    const session = performServerHandshake(socket, sessionOptions(limits))
    this.#session = session
    // Errors of a connection end it; `close` follows.
    session.on('error', () => {})
    session.on('stream', (stream, _headers, flags, raw: string[]) => this.#begin(stream, flags, raw))
    const { idleMs } = limits
    const moved = (): number => socket.bytesRead + socket.bytesWritten
    watchIdle({ session, connection: socket, moved, sweep, idleMs, onIdle: () => this.#expire() })
    session.once('close', () => onClosed?.())
  }

  /** For how long nobody has waited for anything here, in milliseconds; undefined while somebody does. */
  get idleMs(): number | undefined {
    if (this.open > 0 || this.#session?.destroyed) return undefined
    return this.#options.sweep.after(0) - this.#restsSince
  }

  /** Finishes requests under way, takes no new ones, then closes. A new connection may still send its first. */
  drain(): void {
    if (this.#hasAsked) {
      this.#finish()
      return
    }
    if (this.#isDraining) return
    this.#isDraining = true
    const late = setTimeout(() => this.#finish(), FIRST_REQUEST_MS).unref()
    this.#session?.once('close', () => clearTimeout(late))
  }

  #finish(): void {
    if (!this.#session?.closed) this.#session?.close()
  }

  /** Closes at once. */
  reset(): void {
    // A finished session may still wait for its visitor to read or close.
    if (this.#session?.destroyed) this.#options.socket.destroy()
    else this.#session?.destroy()
  }

  #begin(stream: ServerHttp2Stream, flags: number, raw: readonly string[]): void {
    // `close` follows; but an `error` without a listener would end the process.
    stream.on('error', () => {})
    this.#hasAsked = true
    this.open++
    stream.once('close', () => this.#closed())
    const onBroken = (cause: unknown): void => this.#break(stream, cause)
    const { head, fault, bytes } = readHead(raw, { isEnded: (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0 })
    // The library enforces our settings only once the visitor has acknowledged them, which it need not do.
    const isTooLarge = bytes > this.#maxHeadBytes
    const exchange = new Http2Exchange({ stream, head, onBroken })
    if (head.upgrade !== undefined) this.#keepOpen(stream)
    const what = isTooLarge ? `more than ${this.#maxHeadBytes} bytes` : fault
    const code = isTooLarge ? 'REQUEST_HEAD_TOO_LARGE' : 'BAD_VISITOR_REQUEST'
    if (this.#waiting.length === 0 && !this.#share.isSpent) this.#handle(stream, exchange, code, what)
    else if (this.#waiting.push(() => this.#handle(stream, exchange, code, what)) === 1) void this.#handleWaiting()
    // After requests that came with this one.
    if (this.#isDraining) setImmediate(() => this.#finish())
  }

  #keepOpen(stream: ServerHttp2Stream): void {
    this.#upgrades++
    stream.once('close', () => this.#upgrades--)
  }

  #closed(): void {
    this.open--
    this.#restsSince = this.#options.sweep.after(0)
  }

  async #handleWaiting(): Promise<void> {
    while (this.#waiting.length > 0) {
      await ownTurn()
      while (!this.#share.isSpent && this.#waiting.length > 0) this.#waiting.shift()?.()
    }
  }

  /** `what` is wrong with it, if anything. */
  #handle(stream: ServerHttp2Stream, exchange: Http2Exchange, code: VisitorErrorCode, what: string | undefined): void {
    // The visitor reset it while it waited.
    if (stream.destroyed || stream.closed) return
    this.#share.note()
    const { onExchange, onBad } = this.#options
    try {
      if (what === undefined) onExchange(exchange)
      else {
        const { head: answer, body } = onBad(code, what)
        const writer = exchange.respond(answer)
        writer.write(body)
        writer.end()
      }
    } catch (cause) {
      this.#break(stream, cause)
    }
  }

  #expire(): void {
    if (this.open === 0) this.#finish()
    // A WebSocket may be silent for longer, which its proxy bounds.
    else if (this.#upgrades === 0) this.reset()
  }

  #break(stream: ServerHttp2Stream, cause: unknown): void {
    this.#options.onBroken?.(cause)
    stream.close(constants.NGHTTP2_INTERNAL_ERROR)
  }
}

function sessionOptions({ headBytes, headers }: Http2Limits): ServerOptions {
  return {
    ...sessionBounds,
    // No push, which clients decide about.
    settings: {
      enableConnectProtocol: true,
      maxConcurrentStreams: CONCURRENT_STREAMS,
      initialWindowSize: STREAM_WINDOW_BYTES,
      maxHeaderListSize: headBytes,
    },
    maxHeaderListPairs: headers + PSEUDO_HEADERS,
    maxSessionInvalidFrames: INVALID_FRAMES,
    maxSessionRejectedStreams: REJECTED_STREAMS,
    streamResetBurst: RESET_BURST,
    streamResetRate: RESETS_PER_SECOND,
  }
}

/** The library refuses what RFC 9113 §8 calls malformed; the rest is checked here. */
function readHead(
  raw: readonly string[],
  { isEnded }: { isEnded: boolean },
): { head: RequestHead; fault: string | undefined; bytes: number } {
  const { pseudo, headers, contentLength, bytes } = readFields(raw)
  const sent = pseudo.get(':method') ?? ''
  // RFC 8441: all else about it is what it would be over HTTP/1.1, so that every module treats it alike.
  const isWebSocket = sent === 'CONNECT' && pseudo.get(':protocol') === 'websocket' && !contentLength
  const target = pseudo.get(':path') ?? ''
  const hosts = headers.all('host')
  const authority = pseudo.get(':authority') ?? hosts[0] ?? ''
  headers.remove('host')
  const head: RequestHead = {
    method: isWebSocket ? 'GET' : sent,
    target,
    authority,
    headers,
    version: '2',
    body: isEnded || isWebSocket ? 'none' : (contentLength ?? 'unknown'),
    upgrade: isWebSocket ? 'websocket' : undefined,
  }
  return { head, fault: faultOf(head, hosts, pseudo.get(':scheme')), bytes }
}

function faultOf({ method, target, authority }: RequestHead, hosts: string[], scheme?: string): string | undefined {
  if (method === 'CONNECT') return 'a CONNECT that opens no WebSocket'
  if (scheme !== 'https' && scheme !== 'http') return 'a scheme that is not spoken here'
  if (authority === '') return 'neither :authority nor Host'
  if (hosts.some((host) => host.toLowerCase() !== authority.toLowerCase())) return 'a Host that is not :authority'
  if (target === '*') return method === 'OPTIONS' ? undefined : 'a target of * without OPTIONS'
  return /^\/[\x21-\x7e]*$/.test(target) ? undefined : 'a target that is not a path'
}
