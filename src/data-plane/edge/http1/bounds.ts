/** Every bound of HTTP/1.1 on the wire, with its unit and its reason. */

/** What an operator may raise for the connections of visitors. */
export interface Http1Limits {
  /** Request line and headers in all, in bytes. */
  readonly headBytes: number
  /** Headers of one request. */
  readonly headers: number
  /**
   * From the first byte of a head to its last, in milliseconds; absolute, so that sending byte by byte does not extend
   * it.
   */
  readonly headMs: number
  /** How long a connection may wait for its visitor, in milliseconds. */
  readonly idleMs: number
}

export const defaultLimits: Http1Limits = {
  headBytes: 64 * 1024,
  headers: 100,
  headMs: 15_000,
  idleMs: 300_000,
}

/** Status line and headers of a response in all, in bytes. */
export const RESPONSE_HEAD_BYTES = 64 * 1024

/** Headers of one response; more than of a request, since each cookie has its own. */
export const RESPONSE_HEADERS = 256

/** From the first byte of a response head to its last, in milliseconds. */
export const RESPONSE_HEAD_MS = 15_000

/** Interim responses to one request; an upstream that sends more will never finish. */
export const INTERIM_RESPONSES = 32

/** How long a connection to an upstream is kept without a request, in milliseconds. */
export const UPSTREAM_IDLE_MS = 60_000

/** How long an upstream may take to close a connection that we have ended, in milliseconds. */
export const UPSTREAM_LINGER_MS = 30_000

/** How long an upstream that has not answered may stop reading the request, in milliseconds. */
export const UPSTREAM_STALL_MS = 300_000

/** Digits of a Content-Length: enough for a petabyte, and exact as a number. */
export const LENGTH_DIGITS = 15

/** Hexadecimal digits of the size of a chunk, leading zeros included: exact as a number. */
export const CHUNK_SIZE_DIGITS = 13

/**
 * Chunks smaller than this that arrive together are delivered as one piece, in bytes: many tiny chunks must stay cheap.
 */
export const SMALL_CHUNK_BYTES = 1024

/** Chunk extensions of one body, in bytes: they are never needed, so they must not carry much. */
export const CHUNK_EXTENSION_BYTES = 16 * 1024

/** Trailers of one body in all, in bytes. */
export const TRAILER_BYTES = 16 * 1024

/** Trailers of one body. */
export const TRAILERS = 64

/** How much of an unread request body is discarded to keep the connection, in bytes. */
export const DRAIN_BYTES = 256 * 1024

/** How long that may take, in milliseconds. */
export const DRAIN_MS = 5_000

/** How much of an upload that nobody takes is read ahead, in bytes: when its visitor has left, the end may follow. */
export const AHEAD_BYTES = 64 * 1024

/**
 * How much is read and discarded after our last byte, in bytes: closing with unread bytes would make the visitor's
 * system drop our answer.
 */
export const LINGER_BYTES = 16 * 1024 * 1024

/** How long the rest of an answer waits for a visitor that has ended its side and may be gone, in milliseconds. */
export const HALF_CLOSED_MS = 30_000

/** Pieces up to this size are copied into one write, in bytes; a write costs more than the copy. */
export const GATHER_BYTES = 16 * 1024

/** How long a new connection may take to send its first request while connections drain, in milliseconds. */
export const FIRST_REQUEST_MS = 1000
