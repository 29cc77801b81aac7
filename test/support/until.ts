/** Waits for something that has no event: polls for it, and says what was missing when it does not come. */

/** The default limit, in milliseconds: long enough for a busy machine. */
const LIMIT_MS = 60_000

/** The polling interval, in milliseconds. */
const LOOK_MS = 15

/** The first result of `look` that is neither undefined nor false; rejects when there is none in time. */
export async function until<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
  { limitMs = LIMIT_MS }: { limitMs?: number } = {},
): Promise<T> {
  const last = performance.now() + limitMs
  for (;;) {
    const found = await look()
    if (found !== undefined && found !== false) return found
    if (performance.now() > last) throw new Error(`after ${limitMs} ms still not: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
  }
}
