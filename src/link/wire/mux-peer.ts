/** The needs of the known kinds of peers, recognised by the `UserAgent` they send. */
import {
  AGENT_OPENED_STREAMS,
  GROWN_WINDOW_BYTES,
  RUST_STREAMS,
  SERVER_OPENED_STREAMS,
  WINDOW_BYTES,
} from './wire-bounds.ts'

export interface PeerTraits {
  /** Most open streams, from both sides. */
  readonly maxStreams: number
  /** A reset alone does not wake its reader; it must get a FIN first. */
  readonly needsFinBeforeReset: boolean
  /** The peer sends without TCP_NODELAY, and waits 40 ms for an acknowledgement that only data from us carries. */
  readonly needsKick: boolean
  /** The peer is sent the id of the request that a stream is opened for. */
  readonly readsRequestIds: boolean
  /** Largest window a stream may grow to, in bytes. */
  readonly windowBytes: number
}

/** Safe for every agent; the extra frame saves those that need it 40 ms during authentication. */
export const unknownAgent: PeerTraits = {
  maxStreams: RUST_STREAMS,
  needsFinBeforeReset: true,
  needsKick: true,
  readsRequestIds: false,
  windowBytes: WINDOW_BYTES,
}

/** Our own server, as agents see it. It needs no kick: two ends that kick each other would never stop. */
export function serverTraits({ agreedWindow = 0 } = {}): PeerTraits {
  return {
    maxStreams: AGENT_OPENED_STREAMS + SERVER_OPENED_STREAMS,
    needsFinBeforeReset: false,
    needsKick: false,
    readsRequestIds: false,
    windowBytes: Math.max(WINDOW_BYTES, agreedWindow),
  }
}

/** The traits of an agent; `agreedWindow` is the result of `agreeWindow`. */
export function peerTraits(userAgent: string, { agreedWindow = 0 } = {}): PeerTraits {
  const isRust = userAgent.includes('ngrok-rust/')
  const isOurs = agreedWindow > 0
  return {
    maxStreams: isRust ? RUST_STREAMS : SERVER_OPENED_STREAMS,
    needsFinBeforeReset: !isOurs,
    needsKick: isRust,
    readsRequestIds: isOurs,
    windowBytes: isOurs && !isRust ? Math.max(WINDOW_BYTES, agreedWindow) : WINDOW_BYTES,
  }
}

/** The window that both ends can use; 0, which is never sent, when the other end did not ask for a larger one. */
export function agreeWindow(asked: number, offered = GROWN_WINDOW_BYTES): number {
  return asked > WINDOW_BYTES ? Math.min(asked, offered) : 0
}
