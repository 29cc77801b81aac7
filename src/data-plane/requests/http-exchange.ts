/** One HTTP exchange, in any version: the ports between the code that speaks HTTP and the proxy. */
import type { ByteStream } from '../../lib/bytes/byte-stream.ts'
import type { HeaderList } from '../../lib/http/header-list.ts'

export interface RequestHead {
  readonly method: string
  /** Path and query: `/a?b`, or `*`. */
  readonly target: string
  /** `Host` or `:authority` as it was sent. Not a slice of a larger string, since connections keep it. */
  readonly authority: string
  /** All headers except framing and `Host`: no `Content-Length`, `Transfer-Encoding` or `Trailer`. */
  readonly headers: HeaderList
  readonly version: '1.1' | '2'
  readonly body: BodyLength
  /** The protocols of `Upgrade`, when `Connection` names it; over HTTP/2 `websocket`, of an extended CONNECT. */
  readonly upgrade: string | undefined
}

export interface ResponseHead {
  readonly status: number
  /** Empty when unknown; HTTP/2 has none. */
  readonly reason: string
  /** As in a request: without those that frame the body. */
  readonly headers: HeaderList
  readonly body: BodyLength
}

/**
 * A number of bytes; `unknown`, until the body ends; or `none`, when no body follows, not even an empty one.
 */
export type BodyLength = number | 'unknown' | 'none'

/** An incoming body. An error thrown by `sink` resets this exchange and no other. */
export interface BodyReader {
  /** Begins to read; a body of `none` ends at once. */
  read(sink: BodySink): void
  pause(): void
  resume(): void
}

export interface BodySink {
  /** Bytes that are valid only during the call: copy them to keep them. */
  data(chunk: Buffer): void
  /** The body is whole. */
  end(trailers: HeaderList | undefined): void
  /** The rest of the body will not come. */
  failed(error: Error): void
}

/** An outgoing body. */
export interface BodyWriter {
  /** Takes lent bytes; false asks to wait for `onDrain`. */
  write(chunk: Buffer): boolean
  end(trailers?: HeaderList): void
  /** Ends the body early; the other end must see that it is cut short. */
  abort(): void
  onDrain: (() => void) | undefined
}

/** A request of a visitor, to be answered exactly once, by `respond` or by `upgrade`. */
export interface Exchange {
  readonly head: RequestHead
  readonly body: BodyReader
  /** Sends an interim response such as 103, or a 100 on behalf of the upstream. */
  inform(status: number, headers: HeaderList): void
  /** Ends the connection after this answer; call it before `respond`. Other requests under way are still answered. */
  endConnection(): void
  /** Nobody reads the body, or more of it; call it before `respond`, which then announces when the rest ends the connection. */
  ignoreBody(): void
  /** Closes the connection at once without an answer, with everything else that is under way on it. */
  hangUp(): void
  respond(head: ResponseHead): BodyWriter
  /** Answers 101, or 200 over HTTP/2, and returns the connection or stream as raw bytes. */
  upgrade(head: ResponseHead): ByteStream
  /** Called when the visitor leaves before the exchange is complete; at most once. */
  onAbort: (() => void) | undefined
  /** Called after the last byte of the answer was handed over; at most once. */
  onDone: (() => void) | undefined
}

/** A request of ours to an upstream. */
export type UpstreamRequest = Pick<RequestHead, 'method' | 'target' | 'headers' | 'body' | 'upgrade'>

export interface UpstreamSink {
  inform(status: number, headers: HeaderList): void
  /** The final response; its body is read through `body`. */
  respond(head: ResponseHead, body: BodyReader): void
  /** 101: raw bytes from here on, starting with those that have arrived already. */
  upgraded(head: ResponseHead, stream: ByteStream): void
  /**
   * There was no response, or an invalid one. `isUntouched`: on a reused connection, with no sign that the upstream saw
   * the request.
   */
  failed(error: UpstreamFault): void
}

/** One connection to an upstream that speaks HTTP/1.1, or one stream of HTTP/2. */
export interface UpstreamConnection {
  /** Begins a request; only when `isFree`. */
  send(request: UpstreamRequest, sink: UpstreamSink): UpstreamSending
  readonly isFree: boolean
  /** Closed, or about to be. */
  readonly isClosed: boolean
  /** Called when the connection becomes free, and when it closes. */
  onChange: (() => void) | undefined
  close(): void
}

export interface UpstreamSending {
  readonly body: BodyWriter
  /** The visitor left; the connection cannot be used again. */
  cancel(): void
}

export type UpstreamFaultReason = 'closed' | 'invalid' | 'timeout' | 'head_too_large'

export interface UpstreamFaultOptions {
  readonly isUntouched?: boolean
  readonly isSilent?: boolean
  readonly cause?: unknown
}

export class UpstreamFault extends Error {
  readonly reason: UpstreamFaultReason
  readonly isUntouched: boolean
  /** Nothing came back at all, even on a new connection; the upstream may have closed because of the request. */
  readonly isSilent: boolean

  constructor(
    reason: UpstreamFaultReason,
    message: string,
    { isUntouched = false, isSilent = isUntouched, cause }: UpstreamFaultOptions = {},
  ) {
    super(message, { cause })
    this.name = 'UpstreamFault'
    this.reason = reason
    this.isUntouched = isUntouched
    this.isSilent = isSilent
  }
}
