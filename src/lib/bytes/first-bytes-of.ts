/** Views of the first bytes of a reused piece of memory, made once for each length instead of at each use. */

/** Longer views, in bytes, are not kept: they are rarer, and cost little compared with the work on their bytes. */
const SHORT_BYTES = 4096

/** Returns a function that returns the first `length` bytes of `memory`. */
export function firstBytesOf(memory: Buffer): (length: number) => Buffer {
  const known: (Buffer | undefined)[] = Array.from({ length: SHORT_BYTES + 1 }, () => undefined)
  return (length) => {
    if (length > SHORT_BYTES) return memory.subarray(0, length)
    const view = known[length] ?? memory.subarray(0, length)
    known[length] = view
    return view
  }
}
