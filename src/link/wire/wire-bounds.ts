/** Every bound of the wire, with its unit and its reason. */

/** The window of a new stream in each direction, in bytes; fixed by convention of the protocol. */
export const WINDOW_BYTES = 256 * 1024

/** Largest window of one stream between two ends that agreed to it, in bytes: 8 MiB is 640 Mbit/s at 100 ms. */
export const GROWN_WINDOW_BYTES = 8 * 1024 * 1024

/** How much all windows of a session may grow beyond the initial 256 KiB of each stream, in bytes. */
export const SESSION_GROWTH_BYTES = 16 * 1024 * 1024

/** Credit that we may hold back, as a share of the window: few WNDINC frames, and never a stalled sender. */
export const CREDIT_SHARE = 1 / 2

/** Largest DATA body while only one stream has data to send, in bytes: with its header, it fills four TLS records. */
export const LONE_FRAME_BYTES = 64 * 1024 - 8

/** Largest DATA body while streams take turns, in bytes. */
export const SHARED_FRAME_BYTES = 16 * 1024

/** How much is written to the transport at once, in bytes; streams can still take turns with what is left. */
export const BATCH_BYTES = 192 * 1024

/**
 * After this many messages in a turn, data is sent before the turn ends: otherwise both ends would only wait for each
 * other.
 */
export const EAGER_MESSAGES = 16

/** A stream with this many unsent bytes asks its writer to wait. */
export const WRITE_HIGH_BYTES = 128 * 1024

/** A waiting writer goes on when no more than this is unsent, in bytes. */
export const WRITE_LOW_BYTES = 64 * 1024

/** Resets that may wait for a peer that sends but does not read; one more ends the session. */
export const PENDING_RESETS = 1024

/** Streams that an agent may open towards the server: its heartbeat and its calls. */
export const AGENT_OPENED_STREAMS = 256

/** Streams that the server may open towards an agent: one per connection of a visitor. */
export const SERVER_OPENED_STREAMS = 16_384

/** The same for the vendor's Rust agents, which crash at the 513th stream, both directions together. */
export const RUST_STREAMS = 480

/** One past the last stream id that is used; 0x7ffffffe is reserved for a stream that never exists. */
export const STREAM_ID_LIMIT = 0x7ffffffe

/** Text of a GOAWAY, in bytes, in either direction. */
export const GOAWAY_TEXT_BYTES = 256

/** How much an agent may send before it is authenticated, in bytes. */
export const UNAUTHENTICATED_BYTES = 64 * 1024

/** Largest message of a call, in bytes; it may hold traffic policies and certificates. */
export const MESSAGE_BYTES = 1024 * 1024

/** How deep a message may be nested, in levels. */
export const MESSAGE_DEPTH = 32

/** The JSON header of a proxied connection, in bytes. */
export const PROXY_HEADER_BYTES = 8 * 1024

/** How long a closed transport may take to send its last bytes, in milliseconds. */
export const CLOSE_GRACE_MS = 1000
