/** Joins two streams: bytes from one go to the other, at the pace of the slower. Each direction has its own end. */
import { type ByteStream, writeLent } from './byte-stream.ts'

export interface RelayOptions {
  /** How long the relay may be idle in both directions, in milliseconds. The check may take up to twice as long. */
  readonly idleMs?: number
  /** Called exactly once, when both streams are closed. */
  readonly onDone?: (result: RelayResult) => void
}

export interface RelayResult {
  /** Bytes from the first stream to the second, and back. */
  readonly there: number
  readonly back: number
  /** Why bytes may be missing; undefined when both directions ended cleanly. */
  readonly error: Error | undefined
}

/**
 * How long a stream may take to pass on the last bytes of one that was lost after its end, in milliseconds, if its own
 * other end does not close before.
 */
const LAST_BYTES_MS = 30_000

export function relay(a: ByteStream, b: ByteStream, { idleMs, onDone }: RelayOptions = {}): void {
  let there = 0
  let back = 0
  let open = 2
  let error: Error | undefined
  let timer: NodeJS.Timeout | undefined
  let isAEnded = false
  let isBEnded = false

  const closed = (other: ByteStream, cause: Error | undefined, isEnded: boolean): void => {
    error ??= cause
    if (--open === 0) {
      clearInterval(timer)
      onDone?.({ there, back, error })
    } else if (cause && isEnded) passOnLast(other)
    else if (cause) other.reset()
  }

  // A service that answers and reads no more: what it answered must not be lost with the rest of the request.
  const passOnLast = (stream: ByteStream): void => {
    clearInterval(timer)
    timer = setTimeout(() => stream.reset(), LAST_BYTES_MS).unref()
    stream.attach({ data() {}, lent() {}, end() {}, drain() {}, closed: (cause) => closed(stream, cause, false) })
    stream.resume()
  }

  // One interval that checks whether anything moved is cheaper than a timer restarted by every chunk.
  if (idleMs !== undefined) {
    let seen = 0
    timer = setInterval(() => {
      if (there + back !== seen) {
        seen = there + back
        return
      }
      error ??= new Error(`nothing moved for ${idleMs} ms`)
      a.reset()
      b.reset()
    }, idleMs).unref()
  }

  a.attach({
    data(chunk) {
      there += chunk.length
      if (!b.write(chunk)) a.pause()
    },
    lent(chunk) {
      there += chunk.length
      if (!writeLent(b, chunk)) a.pause()
    },
    end() {
      isAEnded = true
      b.end()
    },
    drain: () => b.resume(),
    closed: (cause) => closed(b, cause, isAEnded),
  })
  b.attach({
    data(chunk) {
      back += chunk.length
      if (!a.write(chunk)) b.pause()
    },
    lent(chunk) {
      back += chunk.length
      if (!writeLent(a, chunk)) b.pause()
    },
    end() {
      isBEnded = true
      a.end()
    },
    drain: () => a.resume(),
    closed: (cause) => closed(a, cause, isBEnded),
  })
}
