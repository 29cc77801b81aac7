/** How many workers the servers of the tests have: `npm test -- --workers 2` sets it here, for all of them. */

/** The variable by which `test/run.ts` tells the test files. */
export const WORKERS_VARIABLE = 'POSTERN_TEST_WORKERS'

/** For a server that is started as a process; with 0 it is a single process. */
export const testWorkers = Number(process.env[WORKERS_VARIABLE] ?? 0)

/** Data planes of a server that runs in the process of the test. */
export const testPlanes = Math.max(1, testWorkers)

/** How many new connections reach all planes: with two, all go to the same one less than once in a thousand times. */
export function visitsOfAll(planes = testPlanes): number {
  return planes > 1 ? 12 : 1
}
