/** The program `postern`: runs the command its arguments name and leaves with that command's exit code. */
import { keepObjectsYoung } from './cli/collector.ts'
import { followLauncher } from './cli/launcher.ts'
import { run } from './cli/program.ts'
import { processTerminal } from './cli/terminal.ts'

keepObjectsYoung()
followLauncher()
process.exitCode = await run(process.argv.slice(2), processTerminal())
