/** Every bound of HTTP/2 on the wire, with its unit and its reason. */

/** What an operator may raise for the connections of visitors. */
export interface Http2Limits {
  /** The headers of one request in all, each counted with 32 bytes more, as RFC 9113 §6.5.2 counts. */
  readonly headBytes: number
  /** Headers of one request. */
  readonly headers: number
  /** How long a connection may be without any traffic, in milliseconds. */
  readonly idleMs: number
}

export const defaultLimits: Http2Limits = {
  headBytes: 64 * 1024,
  headers: 100,
  idleMs: 300_000,
}

/** `:method`, `:scheme`, `:authority` and `:path`, which are counted with the headers. */
export const PSEUDO_HEADERS = 4

/** Requests of one visitor that are under way at once. */
export const CONCURRENT_STREAMS = 128

/**
 * Unread bytes per stream: 256 KiB in all, with the 64 KiB that Node reads ahead after returning their window, and the
 * 80 KiB that wait to be forwarded.
 */
export const STREAM_WINDOW_BYTES = 112 * 1024

/**
 * Streams that a visitor may reset at once, and how many more per second. Leaving a page resets everything it was
 * loading; a client that keeps resetting makes us dial for nothing.
 */
export const RESET_BURST = 256
export const RESETS_PER_SECOND = 32

/** Settings in one frame, and pings that wait for their answer. */
export const SETTINGS_ENTRIES = 32
export const OUTSTANDING_PINGS = 10

/** Malformed frames, and refused streams, before the connection is closed. */
export const INVALID_FRAMES = 100
export const REJECTED_STREAMS = 256

/** Memory of one connection in all, in megabytes. */
export const SESSION_MEMORY_MB = 32

/** Headers of one response, and of its trailers. */
export const RESPONSE_HEADERS = 256
export const RESPONSE_HEAD_BYTES = 64 * 1024

/**
 * Headers of a request to an upstream, in bytes: the most that an operator can allow visitors, and as much again for
 * what modules add.
 */
export const SENT_HEAD_BYTES = 256 * 1024

/** Interim responses to one request; an upstream that sends more will never finish. */
export const INTERIM_RESPONSES = 32

/** How long a connection to an upstream is kept without a request, in milliseconds. */
export const UPSTREAM_IDLE_MS = 60_000

/** Concurrent requests on one connection to an upstream, if it allows as many. */
export const UPSTREAM_STREAMS = 256

/**
 * Cancelled requests on one connection to an upstream before another connection is used. Upstreams close a connection
 * with too many of them, and with it the requests of other visitors: Envoy after 500, Node after 1000.
 */
export const UPSTREAM_CANCELS = 200
