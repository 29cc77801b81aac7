/** The session between two planes: one connection, with a stream for each visitor whose tunnel the other plane holds. */
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
 * Between nodes a window of 256 KiB allows 40 Mbit/s at 50 ms, so windows grow as those of our own agents do. A stream that fills
 * its window and whose reader keeps up gets 8 MiB (1.3 Gbit/s at 50 ms), and one session 16 MiB in all. A slow stream, or one
 * with a slow reader, keeps its 256 KiB, so many streams need no more memory than within a node.
 */
const far: PeerTraits = { ...near, maxStreams: RELAY_STREAMS + OWN_STREAMS, windowBytes: GROWN_WINDOW_BYTES }

interface RelaySessionOptions extends Pick<MuxOptions, 'onStream' | 'onClosed'> {
  /** Whether this side opens the streams of visitors, in the role of a server; the other side has the role of an agent. */
  readonly opens: boolean
  /** Whether the other plane is at another node. */
  readonly isFar?: boolean
}

/**
 * Begins a session on `socket` and owns it from then on. Between planes of one node, another stream carries the calls of the
 * plane that opened the session.
 *
 * A connection for each stream would be a little cheaper for a lone stream and for bulk. For new streams, which is where a busy
 * server spends its time, it would be many times dearer. A Unix socket also has no reset, so connections would need frames as
 * well.
 */
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
