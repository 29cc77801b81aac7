/** A stream as its user sees it: ordered bytes both ways, each way with its own end. */
import type { WireCode, WireError } from './wire-error.ts'

export interface WireStream {
  readonly id: number
  /** Bytes that are written and not yet sent. */
  readonly unsent: number
  /** Bytes that came and are not yet read. */
  readonly unread: number
  /** Bytes of ours that the peer says it has read. */
  readonly credited: number
  /** Whether the peer has sent anything. */
  readonly isHeard: boolean
  /** Whether the peer has said that it sends no more. */
  readonly isEndReceived: boolean
  readonly isClosed: boolean
  /** Takes `chunk`, which must not change afterwards; false asks to wait for `drain`. Lost bytes are told by `closed`. */
  write(chunk: Buffer): boolean
  /** The same for bytes that are only lent, see `StreamSink.lent`. */
  writeLent(chunk: Buffer): boolean
  /** We send no more. */
  end(last?: Buffer): void
  /** We send no more, and what the peer still sends is of no interest. */
  close(): void
  /** Gives up both ways at once. */
  reset(code?: WireCode): void
  /** Hands the stream to `sink`, beginning with what came already; a later sink replaces an earlier one. */
  attach(sink: StreamSink): void
  pause(): void
  resume(): void
  /** Exactly `bytes` of what came, while no sink is attached; undefined when there is less. */
  take(bytes: number): Buffer | undefined
  /** Called when bytes, the end or the close came while no sink is attached. */
  onArrival: (() => void) | undefined
}

/** Hears a stream. What it throws resets this stream and nothing else. */
export interface StreamSink {
  /** Bytes that count as read once this returns; call `pause` to get no more. */
  data(chunk: Buffer): void
  /** The same for bytes that change as soon as this returns; without it `data` gets a copy of them. */
  lent?: ((chunk: Buffer) => void) | undefined
  /** The peer sends no more. At most once, after the last byte. */
  end(): void
  /** There is room to write again, after a `write` that gave false. */
  drain(): void
  /** Both ways are over. Exactly once, and the last call; with an error when bytes of either way may be missing. */
  closed(error: WireError | undefined): void
}
