/** A stream as its user sees it: ordered bytes in both directions, each with its own end. */
import type { WireCode, WireError } from './wire-error.ts'

export interface WireStream {
  readonly id: number
  /** Bytes written and not yet sent. */
  readonly unsent: number
  /** Bytes received and not yet read. */
  readonly unread: number
  /** Bytes that the peer says it has read. */
  readonly credited: number
  /** Whether the peer has sent anything. */
  readonly isHeard: boolean
  /** Whether the peer has ended its side. */
  readonly isEndReceived: boolean
  readonly isClosed: boolean
  /** Whether its bytes are sent after each callback of the event loop, instead of at the end of the turn. */
  isPrompt: boolean
  /** Writes `chunk`, which must not change afterwards; false asks to wait for `drain`. `closed` reports lost bytes. */
  write(chunk: Buffer): boolean
  /** The same for lent bytes; see `StreamSink.lent`. */
  writeLent(chunk: Buffer): boolean
  /** Ends our side. */
  end(last?: Buffer): void
  /** Ends our side, and ignores what the peer still sends. */
  close(): void
  /** Aborts both directions at once. */
  reset(code?: WireCode): void
  /** Delivers the stream to `sink`, starting with what has arrived; a later sink replaces an earlier one. */
  attach(sink: StreamSink): void
  pause(): void
  resume(): void
  /** Takes exactly `bytes` bytes while no sink is attached; undefined when there are fewer. */
  take(bytes: number): Buffer | undefined
  /** Called when bytes, the end or the close arrive while no sink is attached. */
  onArrival: (() => void) | undefined
}

/** Receives a stream. An error thrown here resets this stream and no other. */
export interface StreamSink {
  /** Gets bytes, which count as read once this returns; call `pause` to get no more. */
  data(chunk: Buffer): void
  /** The same for bytes that are valid only during the call; without it, `data` gets a copy. */
  lent?: ((chunk: Buffer) => void) | undefined
  /** The peer ended its side. At most once, after the last byte. */
  end(): void
  /** There is room to write again, after a `write` that returned false. */
  drain(): void
  /** Both directions are closed. Called exactly once and last; with an error when bytes may be missing. */
  closed(error: WireError | undefined): void
}
