/** The `bin/postern.js` that tests start: of these sources, or of the bundle that a run of all tests of programs made of them. */
import { fileURLToPath } from 'node:url'

/** The variable by which `test/run.ts` tells the test files. */
export const LAUNCHER_VARIABLE = 'POSTERN_TEST_LAUNCHER'

export const sourceLauncher = fileURLToPath(new URL('../../bin/postern.js', import.meta.url))

export const ownLauncher = process.env[LAUNCHER_VARIABLE] ?? sourceLauncher
