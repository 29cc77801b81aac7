/**
 * The files that `npm test` runs when all others are done: they hold the server to times, and must not be held up by
 * tests beside them.
 */
export const ALONE: readonly string[] = ['test/e2e/cluster/chaos.test.ts']
