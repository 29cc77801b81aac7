/** What carries a session: ordered bytes with backpressure. A socket is one; a pair in memory is another. */
import type { Duplex } from 'node:stream'
import { readLent } from '../lib/bytes/lent-reads.ts'
import { noteRead } from '../lib/bytes/read-memory.ts'
import { CLOSE_GRACE_MS } from './bounds.ts'

export interface TransportEvents {
  /** Bytes that are only lent: they change as soon as this returns. */
  data(chunk: Buffer): void
  /** There is room again, after a `write` that gave false. */
  drain(): void
  /** It carries nothing more, in either direction. */
  closed(error: Error | undefined): void
}

export interface Transport {
  /** Begins to read. */
  open(events: TransportEvents): void
  /** Sends `bytes`, which must not change before `sent` is called; false asks to wait for `drain`. */
  write(bytes: Buffer, sent?: () => void): boolean
  /** Sends what was written, then closes. */
  end(): void
  /** Closes now. */
  destroy(): void
}

/** A TCP or TLS socket, or another Duplex, as transport; from here on the socket belongs to it. */
export function socketTransport(socket: Duplex): Transport {
  if ('setNoDelay' in socket && typeof socket.setNoDelay === 'function') socket.setNoDelay(true)
  return {
    open(events) {
      let failure: Error | undefined
      const isLent = readLent(socket, (chunk) => {
        events.data(chunk)
        return true
      })
      socket.on('data', (chunk: Buffer) => {
        if (!isLent) noteRead(chunk.length)
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
    write: (bytes, sent) => socket.write(bytes, sent),
    end() {
      socket.end()
      if (socket.destroyed) return
      const timer = setTimeout(() => socket.destroy(), CLOSE_GRACE_MS).unref()
      socket.once('close', () => clearTimeout(timer))
    },
    destroy() {
      socket.destroy()
    },
  }
}
