/**
 * How many test files run at once.
 *
 * Tests wait for clocks and for other processes, so there may be more files than cores. But each server of a test gives its
 * database five seconds and each of its agents ten: on a slow machine, too many at once exceed these limits.
 */
const USUAL = 4
const WHERE_SLOW = 3

/** For a fixed piece of work, in milliseconds: about 40 on a server of 2020, and more than this on a slow machine. */
const SLOW_MS = 80

/** Several times, since a machine that is shared with others sometimes pauses. */
const TIMES = 5

export function filesAtOnce(timeMs: () => number = workMs): number {
  return isSlow(timeMs) ? WHERE_SLOW : USUAL
}

/** Whether the machine is slow at the moment. */
export function isSlow(timeMs: () => number = workMs): boolean {
  const times = Array.from({ length: TIMES }, timeMs).sort((a, b) => a - b)
  return (times[Math.floor(TIMES / 2)] ?? 0) > SLOW_MS
}

function workMs(): number {
  const started = performance.now()
  let state = 1
  for (let i = 0; i < 30_000_000; i++) state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0
  // The result is used, so that the loop is not optimised away.
  return performance.now() - started + (state === 0 ? 1 : 0)
}
