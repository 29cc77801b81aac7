/**
 * How long to gather questions or writes before the next query: the more the last one carried, the longer. In a crowd most of
 * the cost is that of the query itself, for this process and for the database, so each should carry many. Two that come together
 * hardly wait.
 */

/** For each that the last query carried, and at most, in milliseconds. */
const EACH_MS = 10
const LONGEST_MS = 150

/** So many that wait are worth a query at once. */
export const ENOUGH = 150

export function gatherMs(together: number, longestMs = LONGEST_MS): number {
  return Math.min(longestMs, EACH_MS * together)
}
