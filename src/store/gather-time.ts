/**
 * How long whoever asks or writes for many waits before it does so again, so that more come along: the more came along the last
 * time, the longer. Two that come together hardly wait. In a crowd a query costs this process and the database more than what it
 * carries for each, so it should be for many; those in it wait for one another anyway.
 */

/** For each of the last time, and at most, in milliseconds. */
const EACH_MS = 10
const LONGEST_MS = 150

/** So many that wait are worth a query at once. */
export const ENOUGH = 150

export function gatherMs(together: number, longestMs = LONGEST_MS): number {
  return Math.min(longestMs, EACH_MS * together)
}
