/**
 * The session between two planes: one connection, with a stream for each visitor whose tunnel the other plane holds, and between
 * planes of one node one for the calls of the plane that opened it.
 *
 * The alternative is a connection for each stream. CPU of both processes together, from three or four short runs of a
 * prototype of each on two busy cores, so only large differences mean anything:
 *
 *                                                         one session       a connection for each stream
 *   300 bytes sent, 1200 back, 64 open streams            1.2 to 2.5 µs     7 to 16 µs
 *   the same with 4 open streams                          4 to 10 µs        9 to 14 µs
 *   the same with 1 open stream                           16 to 31 µs       11 to 13 µs
 *   the same with a new stream for each, 64 at a time     13 to 29 µs       110 to 340 µs
 *   bulk, 4 streams, a gigabyte                           0.44 to 0.58 s    0.36 to 0.48 s
 *
 * A session costs more for a lone stream and for bulk, and much less for many streams and new ones, which is where a busy
 * server spends its time: messages of one turn share a system call. A connection for each stream would need frames too (those
 * above had them): a Unix socket has no reset, so a broken connection would look like one that ended well. And it would need
 * two more descriptors for every visitor.
 */
import type { Duplex } from 'node:stream'
import { Mux, type MuxOptions } from '../wire/mux.ts'
import type { PeerTraits } from '../wire/mux-peer.ts'
import { socketTransport } from '../wire/transport.ts'
import { GROWN_WINDOW_BYTES, WINDOW_BYTES } from '../wire/wire-bounds.ts'

/** Most open streams of one session. Each buffers at most a window of 256 KiB for a slow reader. */
const RELAY_STREAMS = 65_536

/** Streams for pings, and to say that a plane is leaving; between nodes, the side that accepts streams opens these too. */
const OWN_STREAMS = 8

/** Another plane is a peer without quirks; within a node, round trips are too short to need larger windows. */
const near: PeerTraits = {
  maxStreams: RELAY_STREAMS,
  needsFinBeforeReset: false,
  needsKick: false,
  readsRequestIds: true,
  windowBytes: WINDOW_BYTES,
}

/**
 * Between nodes a window of 256 KiB allows 40 Mbit/s at 50 ms, so windows grow as those of our own agents do: up to 8 MiB
 * (1.3 Gbit/s at 50 ms) for a stream that fills it and whose reader keeps up, and 16 MiB in all for one session. A slow stream,
 * or one with a slow reader, keeps its 256 KiB, so many streams need no more memory than within a node.
 */
const far: PeerTraits = { ...near, maxStreams: RELAY_STREAMS + OWN_STREAMS, windowBytes: GROWN_WINDOW_BYTES }

interface RelaySessionOptions extends Pick<MuxOptions, 'onStream' | 'onClosed'> {
  /** Whether this side opens the streams of visitors, in the role of a server; the other side has the role of an agent. */
  readonly opens: boolean
  /** Whether the other plane is at another node. */
  readonly isFar?: boolean
}

/** Begins a session on `socket` and owns it from then on. */
export function relaySession(socket: Duplex, { opens, isFar = false, onStream, onClosed }: RelaySessionOptions): Mux {
  const mux = new Mux({
    role: opens ? 'server' : 'agent',
    transport: socketTransport(socket),
    maxAccepted: (opens ? 0 : RELAY_STREAMS) + (isFar ? OWN_STREAMS : 0),
    // An agent or an edge may reset all of its streams in one turn, and the session with everybody's streams must survive that.
    maxPendingResets: RELAY_STREAMS,
    onStream,
    onClosed,
  })
  mux.adapt(isFar ? far : near)
  return mux
}
