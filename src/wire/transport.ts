/** What carries a session: ordered bytes with backpressure. A socket is one; a pair in memory is another. */
import type { Duplex } from 'node:stream'
import { noteRead } from '../lib/read-memory.ts'
import { BATCH_BYTES, CLOSE_GRACE_MS, LONE_FRAME_BYTES } from './bounds.ts'

export interface TransportEvents {
  data(chunk: Buffer): void
  /** There is room again, after a `write` that gave false. */
  drain(): void
  /** It carries nothing more, in either direction. */
  closed(error: Error | undefined): void
}

export interface Transport {
  /** Begins to read. */
  open(events: TransportEvents): void
  /** Sends all of `chunks` in one go; false asks to wait for `drain`. */
  write(chunks: readonly Buffer[]): boolean
  /** Sends what was written, then closes. */
  end(): void
  /** Closes now. */
  destroy(): void
}

/**
 * What is gathered into one write, in bytes: a batch and a frame that goes beyond it. Sockets of TLS copy what comes in
 * pieces into fresh memory for every write, which costs more than all the rest of a write.
 */
const GATHERED_BYTES = BATCH_BYTES + LONE_FRAME_BYTES + 16 * 1024

/** Writes up to this size get memory of their own, in bytes; it comes from a pool. */
const SMALL_BYTES = 4096

/** A TCP or TLS socket, or another Duplex, as transport; from here on the socket belongs to it. */
export function socketTransport(socket: Duplex): Transport {
  /** Made when first needed, since most sessions send little; not to be touched while a write holds it. */
  let gathered: Buffer | undefined
  let isHeld = false
  const release = (): void => {
    isHeld = false
  }
  const gather = (chunks: readonly Buffer[], bytes: number): boolean => {
    if (bytes <= SMALL_BYTES || bytes > GATHERED_BYTES || isHeld) return socket.write(Buffer.concat(chunks, bytes))
    gathered ??= Buffer.allocUnsafeSlow(GATHERED_BYTES)
    let end = 0
    for (const chunk of chunks) end += chunk.copy(gathered, end)
    isHeld = true
    return socket.write(gathered.subarray(0, bytes), release)
  }
  if ('setNoDelay' in socket && typeof socket.setNoDelay === 'function') socket.setNoDelay(true)
  return {
    open(events) {
      let failure: Error | undefined
      socket.on('data', (chunk: Buffer) => {
        noteRead(chunk.length)
        events.data(chunk)
      })
      socket.on('drain', () => events.drain())
      socket.on('error', (error: Error) => {
        failure = error
      })
      // A session cannot go on one way, so the end of the peer's half is the end of both.
      socket.on('end', () => socket.end())
      socket.on('close', () => events.closed(failure))
    },
    write(chunks) {
      const [only] = chunks
      if (chunks.length === 1 && only) return socket.write(only)
      let bytes = 0
      for (const chunk of chunks) bytes += chunk.length
      return gather(chunks, bytes)
    },
    end() {
      socket.end()
      setTimeout(() => socket.destroy(), CLOSE_GRACE_MS).unref()
    },
    destroy() {
      socket.destroy()
    },
  }
}
