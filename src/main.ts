/** The program `postern`: runs the command its arguments name and leaves with that command's exit code. */
import { keepObjectsYoung } from './cli/collector.ts'
import { followLauncher } from './cli/launcher.ts'
import { run } from './cli/program.ts'
import { processTerminal } from './cli/terminal.ts'

// The reader of our output went away (`postern … | head`): nobody is left to tell.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0)
    throw error
  })
}
keepObjectsYoung()
followLauncher()
process.exitCode = await run(process.argv.slice(2), processTerminal())
