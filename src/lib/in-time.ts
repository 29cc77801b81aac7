/** Waits for something, but not for ever. */

/** Settles as `answer` does, or after `ms` with the error that `late` gives; a later answer is ignored. */
export async function inTime<T>(answer: Promise<T>, ms: number, late: () => Error): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(late()), ms)
  try {
    return await Promise.race([answer, promise])
  } finally {
    clearTimeout(timer)
  }
}
