/** Which tests `npm test`, `npm run test:programs` and `npm run test:unit` run. */
import { type ImportGraph, reachedFrom } from './import-graph.ts'

/**
 * Every test is of one of the first two kinds: `programs` if it starts a program, Postern itself or somebody else's, and
 * `usual` if it does not. A test that needs no store, process or server is of the third kind as well.
 */
export type TestKind = 'usual' | 'programs' | 'unit'

/*
 * What a test starts follows from what its code imports, so there is no list to keep: a new test that starts
 * `postern serve`, `ssh` or a browser is a test of programs from its first day. Such tests make a run of their own because
 * each start costs seconds of CPU time: half the time of all tests for a tenth of them.
 */

/** Modules of tests that start what is small or part of any test: the test's database, and a backend in a process of its own. */
const SMALL: readonly string[] = ['test/support/postgres.ts', 'test/e2e/edges/upstreams.ts']

/** Tests of a single part stay beside it, and ours of the test runner start only `node`. */
const NEVER_PROGRAMS = /^(src|bench|test\/support|test\/runner)\//

const STARTS_PROGRAMS = /^(node:child_process|playwright-core)$/

const NEEDS_SYSTEM =
  /^(node:(child_process|cluster|dgram|https?|http2|net|sqlite|tls|worker_threads)|pg|kysely|test\/support\/platform\.ts)$/

export function isOfKind(kind: TestKind, test: string, graph: ImportGraph): boolean {
  if (kind === 'unit') return isUnitTest(test, graph)
  return (kind === 'programs') === startsPrograms(test, graph)
}

function startsPrograms(test: string, graph: ImportGraph): boolean {
  if (NEVER_PROGRAMS.test(test)) return false
  const reached = reachedFrom(test, graph, (file) => isTestCode(file) && !SMALL.includes(file))
  return [...reached].some((each) => STARTS_PROGRAMS.test(each))
}

/** Neither its code nor a module that it calls opens a socket, a database, a thread or a process. */
function isUnitTest(test: string, graph: ImportGraph): boolean {
  const code = reachedFrom(test, graph, isTestCode)
  const called = [...code].flatMap((each) => graph.get(each) ?? [])
  return ![...code, ...called].some((each) => NEEDS_SYSTEM.test(each))
}

function isTestCode(file: string): boolean {
  return /^(test|bench)\/|\.test\.tsx?$|\/testing\//.test(file)
}
