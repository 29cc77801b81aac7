/**
 * The files that `npm test` runs after all others: they hold the server to time limits, which other tests beside them
 * would disturb.
 */
export const ALONE: readonly string[] = ['test/e2e/cluster/chaos.test.ts']
