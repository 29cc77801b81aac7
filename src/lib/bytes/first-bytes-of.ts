/** Views of the first bytes of a piece of memory that is used again and again: made once for each length, not at each use. */

/** Longer ones are made when they are needed, in bytes: they are rarer, and cost less than what is done with them. */
const SHORT_BYTES = 4096

/** Gives what gives the first `length` bytes of `memory`. */
export function firstBytesOf(memory: Buffer): (length: number) => Buffer {
  const known: (Buffer | undefined)[] = Array.from({ length: SHORT_BYTES + 1 }, () => undefined)
  return (length) => {
    if (length > SHORT_BYTES) return memory.subarray(0, length)
    const view = known[length] ?? memory.subarray(0, length)
    known[length] = view
    return view
  }
}
