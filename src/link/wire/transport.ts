/** The transport of a session: ordered bytes with backpressure, over a socket or a pair in memory. */
import type { Duplex } from 'node:stream'
import { readBorrowed } from '../../lib/bytes/borrowed-reads.ts'
import { noteRead } from '../../lib/bytes/read-memory.ts'
import { CLOSE_GRACE_MS } from './wire-bounds.ts'

export interface TransportEvents {
  /** Lent bytes, valid only during the call. */
  data(chunk: Buffer): void
  /** There is room again, after a `write` that returned false. */
  drain(): void
  /** The transport is closed in both directions. */
  closed(error: Error | undefined): void
}

export interface Transport {
  /** Starts reading. */
  open(events: TransportEvents): void
  /** Sends `bytes`, which must not change before `sent` is called; false asks to wait for `drain`. */
  write(bytes: Buffer, sent?: () => void): boolean
  /** Sends what was written, then closes. */
  end(): void
  /** Closes now. */
  destroy(): void
}

/** Makes a transport from a TCP or TLS socket, or another Duplex; the transport owns it from then on. */
export function socketTransport(socket: Duplex): Transport {
  if ('setNoDelay' in socket && typeof socket.setNoDelay === 'function') socket.setNoDelay(true)
  return {
    open(events) {
      let failure: Error | undefined
      const isLent = readBorrowed(socket, (chunk) => {
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
      // A session needs both directions, so the end of one is the end of both.
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
