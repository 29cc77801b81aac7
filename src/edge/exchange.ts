/** One HTTP exchange, whatever version carries it: the ports between those who speak HTTP and the proxy in between. */
import type { ByteStream } from '../lib/bytes/byte-stream.ts'
import type { HeaderList } from '../lib/http/header-list.ts'

export interface RequestHead {
  readonly method: string
  /** Path and query: `/a?b`, or `*`. */
  readonly target: string
  /** `Host` or `:authority` as it was sent. */
  readonly authority: string
  /** All but framing and `Host`: `Content-Length`, `Transfer-Encoding`, `Trailer` are not among them. */
  readonly headers: HeaderList
  readonly version: '1.1' | '2'
  readonly body: BodyLength
  /** The protocols of `Upgrade`, when `Connection` names it; HTTP/1.1 alone. */
  readonly upgrade: string | undefined
}

export interface ResponseHead {
  readonly status: number
  /** Empty when unknown; HTTP/2 has none. */
  readonly reason: string
  /** As in a request, without those that frame the body. */
  readonly headers: HeaderList
  readonly body: BodyLength
}

/** Bytes, or `unknown` until the end comes, or `none`: no body follows, not even an empty one. */
export type BodyLength = number | 'unknown' | 'none'

/** A body as it comes in. What `sink` throws resets this exchange and nothing else. */
export interface BodyReader {
  /** Begins to read; a body of `none` ends at once. */
  read(sink: BodySink): void
  pause(): void
  resume(): void
}

export interface BodySink {
  /** Bytes that change as soon as this returns: whoever keeps them makes a copy. */
  data(chunk: Buffer): void
  /** The body is whole. */
  end(trailers: HeaderList | undefined): void
  /** The rest will not come. */
  failed(error: Error): void
}

/** A body as it goes out. */
export interface BodyWriter {
  /** Takes bytes that are only lent; false asks to wait for `onDrain`. */
  write(chunk: Buffer): boolean
  end(trailers?: HeaderList): void
  /** The rest cannot come: the other end must see that the body is cut short. */
  abort(): void
  onDrain: (() => void) | undefined
}

/** A request of a visitor, to be answered exactly once, by `respond` or by `upgrade`. */
export interface Exchange {
  readonly head: RequestHead
  readonly body: BodyReader
  /** An interim response such as 103; 100 too, on behalf of the upstream. */
  inform(status: number, headers: HeaderList): void
  /** The connection takes no other request: to be called before `respond`. Others that are under way are answered. */
  endConnection(): void
  /** Ends the connection at once and without an answer, and with it whatever else is under way on it. */
  hangUp(): void
  respond(head: ResponseHead): BodyWriter
  /** Answers 101 and gives the connection, HTTP/1.1 alone. */
  upgrade(head: ResponseHead): ByteStream
  /** The visitor is gone before the exchange was whole; at most once. */
  onAbort: (() => void) | undefined
  /** After the last byte of the answer was handed over. At most once. */
  onDone: (() => void) | undefined
}

/** A request of ours to an upstream. */
export interface UpstreamRequest {
  readonly method: string
  readonly target: string
  /** `Host` is among them. */
  readonly headers: HeaderList
  readonly body: BodyLength
  /** Asks for another protocol; the answer may be a 101. */
  readonly upgrade: string | undefined
}

export interface UpstreamSink {
  inform(status: number, headers: HeaderList): void
  /** The final response; its body is read through `body`. */
  respond(head: ResponseHead, body: BodyReader): void
  /** 101: from here on raw bytes, beginning with those that came already. */
  upgraded(head: ResponseHead, stream: ByteStream): void
  /** No response, or none that could be understood. `isUntouched`: nothing on a kept connection shows that the upstream saw the request. */
  failed(error: UpstreamFault): void
}

/** One connection to an upstream that speaks HTTP/1.1, or one stream of HTTP/2. */
export interface UpstreamConnection {
  /** Begins a request; one at a time, when `isFree`. */
  send(request: UpstreamRequest, sink: UpstreamSink): UpstreamSending
  readonly isFree: boolean
  /** Neither busy nor usable any more. */
  readonly isClosed: boolean
  /** Called when it becomes free, and when it closes. */
  onChange: (() => void) | undefined
  close(): void
}

export interface UpstreamSending {
  readonly body: BodyWriter
  /** The visitor is gone: the connection cannot be used again. */
  cancel(): void
}

export type UpstreamFaultReason = 'closed' | 'invalid' | 'timeout' | 'head_too_large'

export class UpstreamFault extends Error {
  readonly reason: UpstreamFaultReason
  readonly isUntouched: boolean

  constructor(
    reason: UpstreamFaultReason,
    message: string,
    { isUntouched = false, cause }: { isUntouched?: boolean; cause?: unknown } = {},
  ) {
    super(message, { cause })
    this.name = 'UpstreamFault'
    this.reason = reason
    this.isUntouched = isUntouched
  }
}
