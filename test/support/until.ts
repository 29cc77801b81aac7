/** Waits for something that has no event: polls for it, and reports what was missing if it does not come. */

/** The default limit, in milliseconds: long enough for a busy machine. */
const LIMIT_MS = 60_000

/**
 * The shortest and longest pause between two looks, in milliseconds, and between these the pause as a part of the wait
 * so far: polling costs little during a long wait, and notices the result late by this part at most.
 */
const SOONEST_MS = 15
const LATEST_MS = 250
const PART = 0.1

/** The first result of `look` that is neither undefined nor false; rejects when there is none in time. */
export async function until<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
  { limitMs = LIMIT_MS }: { limitMs?: number } = {},
): Promise<T> {
  const begun = performance.now()
  for (;;) {
    const found = await look()
    if (found !== undefined && found !== false) return found
    const waited = performance.now() - begun
    if (waited > limitMs) throw new Error(`after ${limitMs} ms still not: ${what}`)
    const pauseMs = Math.min(Math.max(waited * PART, SOONEST_MS), LATEST_MS)
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
}
