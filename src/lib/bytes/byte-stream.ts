/** Ordered bytes both ways, each way with its own end: what a socket, a stream of a session and a relay have in common. */
import { noteRead } from './read-memory.ts'

export interface ByteStream {
  /** Takes `chunk`, which must not change afterwards; false asks to wait for `drain`. Lost bytes are told by `closed`. */
  write(chunk: Buffer): boolean
  /** The same for bytes that are only lent, see `ByteSink.lent`; left out where a copy must be made anyway. */
  writeLent?(chunk: Buffer): boolean
  /** We send no more. */
  end(): void
  /** Gives up both ways at once. */
  reset(): void
  /** Hands the stream to `sink`, beginning with what came already; a later sink replaces an earlier one. */
  attach(sink: ByteSink): void
  /** No more `data`, `lent` or `end` until `resume`. */
  pause(): void
  resume(): void
}

/** Hears a stream. */
export interface ByteSink {
  /** Bytes to keep. Call `pause` to get no more. */
  data(chunk: Buffer): void
  /**
   * Bytes that change as soon as this returns, for who passes them on at once. A stream that reads into memory it uses
   * again calls this where it is there, and `data` with a copy where it is not.
   */
  lent?: ((chunk: Buffer) => void) | undefined
  /** The other end sends no more. At most once, after the last byte. */
  end(): void
  /** There is room to write again, after a `write` that gave false. */
  drain(): void
  /** Both ways are over. Exactly once, and the last call; with an error when bytes of either way may be missing. */
  closed(error: Error | undefined): void
}

/** Writes bytes that are only lent to any stream. */
export function writeLent(stream: ByteStream, chunk: Buffer): boolean {
  return stream.writeLent ? stream.writeLent(chunk) : stream.write(kept(chunk))
}

/** Bytes that were lent, to keep. */
export function kept(chunk: Buffer): Buffer {
  if (chunk.length < LARGE_BYTES) {
    noteRead(chunk.length)
    return Buffer.from(chunk)
  }
  const copy = memoryFor(chunk.length)
  chunk.copy(copy)
  return copy
}

/**
 * Memory for bytes that may wait, and told to those who give it back. Smaller pieces share memory, as Node has it; a
 * larger one would hold the 64 KiB that it shares for as long as a slow reader lets it wait.
 */
export function memoryFor(bytes: number): Buffer {
  if (bytes < LARGE_BYTES) return Buffer.allocUnsafe(bytes)
  noteRead(bytes)
  return Buffer.allocUnsafeSlow(bytes)
}

/** From this size on a piece of memory stands alone, in bytes. */
const LARGE_BYTES = 4 * 1024
