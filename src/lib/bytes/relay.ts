/** Joins two streams: what comes from one goes to the other, each way with its own end, at the pace of the slower. */
import { type ByteStream, writeLent } from './byte-stream.ts'

export interface RelayOptions {
  /** How long nothing may move in either direction, in milliseconds; up to twice as long in fact. */
  readonly idleMs?: number
  /** Both streams are closed. Exactly once. */
  readonly onDone?: (result: RelayResult) => void
}

export interface RelayResult {
  /** Bytes that went from the first stream to the second, and back. */
  readonly there: number
  readonly back: number
  /** Why bytes may be missing; undefined when both ends said all they had to. */
  readonly error: Error | undefined
}

export function relay(a: ByteStream, b: ByteStream, { idleMs, onDone }: RelayOptions = {}): void {
  let there = 0
  let back = 0
  let open = 2
  let error: Error | undefined
  let timer: NodeJS.Timeout | undefined

  const closed = (other: ByteStream, cause: Error | undefined): void => {
    error ??= cause
    if (cause) other.reset()
    if (--open > 0) return
    clearInterval(timer)
    onDone?.({ there, back, error })
  }

  // One timer that looks back at what moved, not one that every chunk winds up again.
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
    end: () => b.end(),
    drain: () => b.resume(),
    closed: (cause) => closed(b, cause),
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
    end: () => a.end(),
    drain: () => a.resume(),
    closed: (cause) => closed(a, cause),
  })
}
