/** Every bound of the wire, with its unit and its reason. */

/** The window of a new stream in each direction, in bytes; fixed by convention of the protocol. */
export const WINDOW_BYTES = 256 * 1024

/** How far the window of one stream may grow between two ends that agreed to it, in bytes: 8 MiB is 640 Mbit/s at 100 ms. */
export const GROWN_WINDOW_BYTES = 8 * 1024 * 1024

/** What all grown windows of a session may hold beyond the first 256 KiB of each stream, in bytes. */
export const SESSION_GROWTH_BYTES = 16 * 1024 * 1024

/** Credit that we may owe before we send it, as a share of the window: few WNDINC frames, and never a stalled sender. */
export const CREDIT_SHARE = 1 / 2

/** Largest DATA body we send while one stream alone has something to say, in bytes: with its header four records of TLS. */
export const LONE_FRAME_BYTES = 64 * 1024 - 8

/** Largest DATA body we send while streams take turns, in bytes. */
export const SHARED_FRAME_BYTES = 16 * 1024

/** How much goes to the transport in one write, in bytes; what follows can still be reordered in favour of other streams. */
export const BATCH_BYTES = 192 * 1024

/** So many messages of a turn leave without waiting for its end: with more, both ends would only ever wait for each other. */
export const EAGER_MESSAGES = 16

/** A stream with this much unsent asks its writer to wait, in bytes. */
export const WRITE_HIGH_BYTES = 128 * 1024

/** A waiting writer is called again when no more than this is unsent, in bytes. */
export const WRITE_LOW_BYTES = 64 * 1024

/** Resets that wait for a peer which sends but does not read; one more and the session ends. */
export const PENDING_RESETS = 1024

/** Streams that an agent may have open towards the server: its heartbeat and its calls. */
export const AGENT_OPENED_STREAMS = 256

/** Streams that the server may have open towards an agent: one for each connection of a visitor. */
export const SERVER_OPENED_STREAMS = 16_384

/** The same towards the vendor's Rust agents, which die of the 513th stream in both directions together. */
export const RUST_STREAMS = 480

/** One past the last stream id we use; the id 0x7ffffffe is kept for a stream that never exists. */
export const STREAM_ID_LIMIT = 0x7ffffffe

/** Text of a GOAWAY, in bytes, in either direction. */
export const GOAWAY_TEXT_BYTES = 256

/** What an agent may send before it is authenticated, in bytes. */
export const UNAUTHENTICATED_BYTES = 64 * 1024

/** One message of a call, in bytes; traffic policies and certificates ride in them. */
export const MESSAGE_BYTES = 1024 * 1024

/** How deep a message may be nested, in levels. */
export const MESSAGE_DEPTH = 32

/** The JSON header of a proxied connection, in bytes. */
export const PROXY_HEADER_BYTES = 8 * 1024

/** How long a closed transport may take to send its last bytes, in milliseconds. */
export const CLOSE_GRACE_MS = 1000
