/**
 * The session between two planes: one connection, with a stream for each visitor whose tunnel the other plane holds.
 *
 * The other way would be a connection for each stream. CPU of both processes together, over three or four short runs of a
 * sketch of each on two busy cores, so only large differences mean anything:
 *
 *                                                         one session       a connection for each stream
 *   300 bytes there, 1200 back, 64 open streams           1.2 to 2.5 µs     7 to 16 µs
 *   the same with 4 open streams                          4 to 10 µs        9 to 14 µs
 *   the same with 1 open stream                           16 to 31 µs       11 to 13 µs
 *   the same with a new stream for each, 64 at a time     13 to 29 µs       110 to 340 µs
 *   bulk, 4 streams, a gigabyte                           0.44 to 0.58 s    0.36 to 0.48 s
 *
 * A session is dearer for a lone stream and for bulk, and much cheaper for many streams and new ones, which is where a busy
 * server spends its time: messages of one turn share a system call. Nor would a connection for each stream be free of
 * frames (those above had them): a Unix socket has no reset, so one that breaks off would look like one that ended well.
 * And it would need two more descriptors for every visitor.
 */
import type { Socket } from 'node:net'
import { GROWN_WINDOW_BYTES, WINDOW_BYTES } from '../wire/bounds.ts'
import { Mux, type MuxOptions } from '../wire/mux.ts'
import type { PeerTraits } from '../wire/peer.ts'
import { socketTransport } from '../wire/transport.ts'

/** Streams that one session may have open at once. Each holds at most a window of 256 KiB for a slow reader. */
export const RELAY_STREAMS = 65_536

/** Streams that the side that opens none may open all the same between nodes: its pings, and that it is leaving. */
const OWN_STREAMS = 8

/** Another plane is a peer without quirks, and one of this node is near enough to need no larger windows. */
const near: PeerTraits = {
  maxStreams: RELAY_STREAMS,
  needsFinBeforeReset: false,
  needsKick: false,
  readsRequestIds: true,
  windowBytes: WINDOW_BYTES,
}

/**
 * Between nodes a window of 256 KiB is 40 Mbit/s at 50 ms, so windows grow as those of our own agents do: up to 8 MiB,
 * 1.3 Gbit/s at 50 ms, for a stream that fills it and whose reader keeps up; 16 MiB in all for one session. A stream
 * that is slow, or whose reader is, keeps the 256 KiB, so many streams need no more memory than within a node.
 */
const far: PeerTraits = { ...near, maxStreams: RELAY_STREAMS + OWN_STREAMS, windowBytes: GROWN_WINDOW_BYTES }

export interface RelaySessionOptions extends Pick<MuxOptions, 'onStream' | 'onClosed'> {
  /** Whether this side opens the streams of visitors; it has the role of a server then, the other that of an agent. */
  readonly opens: boolean
  /** Whether the other plane is at another node. */
  readonly isFar?: boolean
}

/** Takes over `socket`. */
export function relaySession(socket: Socket, { opens, isFar = false, onStream, onClosed }: RelaySessionOptions): Mux {
  const mux = new Mux({
    role: opens ? 'server' : 'agent',
    transport: socketTransport(socket),
    maxAccepted: (opens ? 0 : RELAY_STREAMS) + (isFar ? OWN_STREAMS : 0),
    // An agent or an edge may go with all of its streams in one turn, and the streams of others must not go with them.
    maxPendingResets: RELAY_STREAMS,
    onStream,
    onClosed,
  })
  mux.adapt(isFar ? far : near)
  return mux
}
