/** How long an agent waits before it reconnects: longer after every failure, up to a limit, and partly at random. */

/** First and longest wait for a server that cannot be reached, in milliseconds. */
const FIRST_MS = 500
const LONGEST_MS = 30_000

/** The same for a server that refused the agent for a lasting reason: retrying more often would not help. */
const FIRST_REFUSED_MS = 15_000
const LONGEST_REFUSED_MS = 120_000

interface Retry {
  /** How many attempts failed in a row; 0 after a session that lasted. */
  readonly failures: number
  readonly isRefused: boolean
  /** Returns a number from 0 up to, but not including, 1. */
  readonly random: () => number
}

/** Milliseconds. Half of each wait is random, so that the agents of a restarted server do not all return at once. */
export function retryDelay({ failures, isRefused, random }: Retry): number {
  const first = isRefused ? FIRST_REFUSED_MS : FIRST_MS
  if (failures === 0 && !isRefused) return random() * FIRST_MS
  const longest = isRefused ? LONGEST_REFUSED_MS : LONGEST_MS
  const wait = Math.min(longest, first * 2 ** Math.max(0, failures - 1))
  return wait / 2 + (random() * wait) / 2
}
