/** Joins two streams: bytes from one go to the other, at the pace of the slower. */

import { type ByteStream, writeLent } from './byte-stream.ts'
import type { Movable } from './close-when-idle.ts'

export interface RelayOptions {
  /** How long the relay may be idle in both directions, in milliseconds. The check may take up to twice as long. */
  readonly idleMs?: number
  /** Instead of `LAST_BYTES_MS`, for tests. */
  readonly lastBytesMs?: number
  /** Sees the bytes before they are passed on. */
  readonly watch?: RelayWatch | undefined
  /** Called exactly once, when both streams are closed. */
  readonly onDone?: (result: RelayResult) => void
}

/**
 * Watches a relay. It is not a stream around one of the two: if only some streams were wrapped, V8 would have to handle
 * both kinds at each call.
 */
interface RelayWatch {
  /** Lent bytes of the first stream, and of the second: they change as soon as the call returns. */
  fromVisitor(chunk: Buffer): void
  fromService(chunk: Buffer): void
  /** The second stream sends no more. May be called again when it is closed. */
  serviceEnded(): void
  /** The first stream is closed. */
  closed(): void
}

export interface RelayResult {
  /** Bytes from the first stream to the second, and back. */
  readonly there: number
  readonly back: number
  /** Why bytes may be missing; undefined when both directions ended cleanly. */
  readonly error: Error | undefined
}

/** How long the last bytes of a stream that failed after its end may take to reach the other, in milliseconds. */
const LAST_BYTES_MS = 10_000

/**
 * How much is read and dropped meanwhile, in bytes: some clients read an answer only when they have sent everything. No
 * more, since a service might send without end to a visitor that has left.
 */
const DROPPED_BYTES = 1024 * 1024

/**
 * Joins `a`, the visitor's side, and `b`; returns an object that counts their bytes and can end both. Each direction has its
 * own end.
 */
export function relay(
  a: ByteStream,
  b: ByteStream,
  { idleMs, lastBytesMs = LAST_BYTES_MS, watch, onDone }: RelayOptions = {},
): Movable {
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

  // One end has answered and stopped reading: its answer must still arrive, though bytes sent to it are lost.
  const passOnLast = (stream: ByteStream): void => {
    clearInterval(timer)
    timer = setTimeout(() => stream.reset(), lastBytesMs).unref()
    let dropped = 0
    const drop = (chunk: Buffer): void => {
      dropped += chunk.length
      if (dropped > DROPPED_BYTES) stream.pause()
    }
    stream.attach({ data: drop, lent: drop, end() {}, drain() {}, closed: (cause) => closed(stream, cause, false) })
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
      watch?.fromVisitor(chunk)
      if (!b.write(chunk)) a.pause()
    },
    lent(chunk) {
      there += chunk.length
      watch?.fromVisitor(chunk)
      if (!writeLent(b, chunk)) a.pause()
    },
    end() {
      isAEnded = true
      b.end()
    },
    drain: () => b.resume(),
    closed(cause) {
      watch?.closed()
      closed(b, cause, isAEnded)
    },
  })
  b.attach({
    data(chunk) {
      back += chunk.length
      watch?.fromService(chunk)
      if (!a.write(chunk)) b.pause()
    },
    lent(chunk) {
      back += chunk.length
      watch?.fromService(chunk)
      if (!writeLent(a, chunk)) b.pause()
    },
    end() {
      isBEnded = true
      watch?.serviceEnded()
      a.end()
    },
    drain: () => a.resume(),
    closed(cause) {
      watch?.serviceEnded()
      closed(a, cause, isBEnded)
    },
  })

  return {
    get bytesRead() {
      return there
    },
    get bytesWritten() {
      return back
    },
    get destroyed() {
      return open === 0
    },
    destroy() {
      a.reset()
      b.reset()
    },
  }
}
