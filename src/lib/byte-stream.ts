/** Ordered bytes both ways, each way with its own end: what a socket, a stream of a session and a relay have in common. */

export interface ByteStream {
  /** Takes `chunk`, which must not change afterwards; false asks to wait for `drain`. Lost bytes are told by `closed`. */
  write(chunk: Buffer): boolean
  /** We send no more. */
  end(): void
  /** Gives up both ways at once. */
  reset(): void
  /** Hands the stream to `sink`, beginning with what came already; a later sink replaces an earlier one. */
  attach(sink: ByteSink): void
  /** No more `data` and no `end` until `resume`. */
  pause(): void
  resume(): void
}

/** Hears a stream. */
export interface ByteSink {
  /** Call `pause` to get no more. */
  data(chunk: Buffer): void
  /** The other end sends no more. At most once, after the last byte. */
  end(): void
  /** There is room to write again, after a `write` that gave false. */
  drain(): void
  /** Both ways are over. Exactly once, and the last call; with an error when bytes of either way may be missing. */
  closed(error: Error | undefined): void
}
