/** The bounds that both ends of an HTTP/2 connection have in common, with their units and reasons. */
import type { SessionOptions } from 'node:http2'

/** `:method`, `:scheme`, `:authority` and `:path`, which are counted with the headers. */
export const PSEUDO_HEADERS = 4

/**
 * Unread bytes per stream: 256 KiB in all, with the 64 KiB that Node reads ahead after returning their window, and the
 * 80 KiB that wait to be forwarded.
 */
export const STREAM_WINDOW_BYTES = 112 * 1024

export const sessionBounds: SessionOptions & { strictSingleValueFields: boolean } = {
  /** Settings in one frame, and pings that wait for their answer. */
  maxSettings: 32,
  maxOutstandingPings: 10,
  /** Memory of one connection in all, in megabytes. */
  maxSessionMemory: 32,
  // Visitors and upstreams repeat headers that should be single; that is between them.
  strictSingleValueFields: false,
}
