/** Frees the memory of read bytes soon after they were used. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Bytes read between two minor collections: an eighth of what triggers a full one. */
export const ROUND_BYTES = 8 * 1024 * 1024

/** The process has one heap, and so one count. */
let uncollected = 0
let collect: (() => void) | undefined

/**
 * Counts bytes read; call it for every read.
 *
 * Every socket read gets memory outside the heap, held by a heap object of a few dozen bytes. V8 schedules its minor
 * collection by the size of those small objects. At full speed a gigabyte piles up before a minor collection is due, so V8
 * runs the slow full collection over and over instead. Asking for a minor collection by the number of bytes read costs a
 * millisecond each time and saves more than half of the CPU time of a busy stream.
 */
export function noteRead(bytes: number): void {
  uncollected += bytes
  if (uncollected < ROUND_BYTES) return
  uncollected = 0
  collect ??= youngCollector()
  collect()
}

/** Looked up at first use: a process that moves little never needs it. */
function youngCollector(): () => void {
  try {
    setFlagsFromString('--expose-gc')
    const gc: unknown = runInNewContext('gc')
    if (typeof gc === 'function') return () => void gc({ type: 'minor' })
  } catch {
    // Another engine, or a locked-down one: everything works without this, only slower.
  }
  return () => {}
}
