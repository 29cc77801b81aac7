/** Ordered bytes in both directions, each with its own end: what sockets and the streams of a session have in common. */
import { noteRead } from './read-memory.ts'

export interface ByteStream {
  /** Writes `chunk`, which must not change afterwards. False asks to wait for `drain`; `closed` reports lost bytes. */
  write(chunk: Buffer): boolean
  /** The same for lent bytes; see `ByteSink.lent`. A stream that has to copy anyway leaves this out. */
  writeLent?(chunk: Buffer): boolean
  /** Ends our direction: nothing more is sent. */
  end(): void
  /** Gives up both directions at once. */
  reset(): void
  /** Delivers the stream to `sink`, starting with what has arrived; a later sink replaces an earlier one. */
  attach(sink: ByteSink): void
  /** No more `data`, `lent` or `end` until `resume`. */
  pause(): void
  resume(): void
}

/** Receives what happens on a stream. */
export interface ByteSink {
  /** Bytes that the sink may keep. Call `pause` to get no more. */
  data(chunk: Buffer): void
  /**
   * Gets lent bytes, which change as soon as this returns, so it suits sinks that pass them on at once. A stream that
   * reuses its read memory calls this if the sink has it, and otherwise `data` with a copy.
   */
  lent?: ((chunk: Buffer) => void) | undefined
  /** The other end ended its side. At most once, after the last byte. */
  end(): void
  /** There is room to write again, after a `write` that returned false. */
  drain(): void
  /** Both directions are closed. Called exactly once and last; with an error when bytes may be missing. */
  closed(error: Error | undefined): void
}

/** Writes lent bytes to any stream. */
export function writeLent(stream: ByteStream, chunk: Buffer): boolean {
  return stream.writeLent ? stream.writeLent(chunk) : stream.write(keepBytes(chunk))
}

/** A copy of lent bytes that may be kept. */
export function keepBytes(chunk: Buffer): Buffer {
  if (chunk.length < LARGE_BYTES) {
    noteRead(chunk.length)
    return Buffer.from(chunk)
  }
  const copy = memoryFor(chunk.length)
  chunk.copy(copy)
  return copy
}

/**
 * Memory for bytes that may wait for a slow reader. Small pieces share Node's pool. A larger piece gets separate
 * memory, because in the pool it would keep a whole shared 64 KiB alive for as long as it waits; `noteRead` counts it.
 */
export function memoryFor(bytes: number): Buffer {
  if (bytes < LARGE_BYTES) return Buffer.allocUnsafe(bytes)
  noteRead(bytes)
  return Buffer.allocUnsafeSlow(bytes)
}

/** From this size on, in bytes, a piece gets separate memory. */
const LARGE_BYTES = 4 * 1024
