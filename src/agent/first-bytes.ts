/** Looks at how a stream begins when it is about to be refused, so that people can be told what was asked for. */
import type { WireStream } from '../wire/wire-stream.ts'

/** How long the first bytes may take, in milliseconds: whoever opens a stream for a request has it at hand. */
const WAIT_MS = 500

/** Calls `done` once with at most `bytes` of what comes first; with none when nothing comes in time. */
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
