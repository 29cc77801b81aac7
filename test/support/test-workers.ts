/** How many workers the servers of the tests have: `npm test -- --workers 2` sets it here, for all of them. */

/** What `test/run.ts` tells the test files by. */
export const WORKERS_VARIABLE = 'POSTERN_TEST_WORKERS'

/** Of a server that is started as a process; with 0 it is one process. */
export const testWorkers = Number(process.env[WORKERS_VARIABLE] ?? 0)

/** Data planes of a server that runs in the process of the test. */
export const testPlanes = Math.max(1, testWorkers)

/** New connections of which one gets to each of the planes; that none does to one of two happens once in thousands of times. */
export function visitsOfAll(planes = testPlanes): number {
  return planes > 1 ? 12 : 1
}
