/** How long to gather questions or writes before the next query. */

/** The time for each item of the last query, and the longest, in milliseconds. */
const EACH_MS = 10
const LONGEST_MS = 150

/** The longest for questions of binds, of which few are under way at once: no crowd comes while they wait. */
const BIND_MS = 10

/** How many waiting items are worth a query at once. */
export const ENOUGH = 150

/**
 * Longer, the more the last query carried. In a crowd most of the cost is that of the query itself, for this process and for
 * the database, so each query should carry many. Two questions that come together hardly wait.
 */
export function gatherMs(together: number, longestMs = LONGEST_MS): number {
  return Math.min(longestMs, EACH_MS * together)
}

/** The same for questions of binds. */
export function bindGatherMs(together: number): number {
  return gatherMs(together, BIND_MS)
}
