/** Reads the beginning of a stream that is about to be refused, so that the request can still be shown. */
import type { WireStream } from '../link/wire/wire-stream.ts'

/** How long to wait for the first bytes, in milliseconds: a stream is usually opened when there is a request to send. */
const WAIT_MS = 500

/** Calls `done` once with at most the first `bytes` bytes; with none if nothing arrives in time. */
export function firstBytes(stream: WireStream, bytes: number, done: (first: Buffer) => void): void {
  const finish = (): void => {
    clearTimeout(timer)
    stream.onArrival = undefined
    done(stream.take(Math.min(stream.unread, bytes)) ?? Buffer.alloc(0))
  }
  const look = (): void => {
    if (stream.unread > 0 || stream.isClosed || stream.isEndReceived) finish()
  }
  const timer = setTimeout(finish, WAIT_MS).unref()
  stream.onArrival = look
  look()
}
