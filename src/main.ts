/** The program `postern`: runs the command that its arguments name and exits with its code. */

import { keepCompiledCode } from './cli/compile-cache.ts'
import { followLauncher } from './cli/launcher.ts'
import { inlineMore, keepObjectsYoung } from './cli/v8-flags.ts'

keepObjectsYoung()
inlineMore()
followLauncher()
keepCompiledCode()
// Imported only now, so that their compiled code is cached too.
const [{ run }, { processTerminal }] = await Promise.all([import('./cli/program.ts'), import('./cli/terminal.ts')])
process.exitCode = await run(process.argv.slice(2), processTerminal())
