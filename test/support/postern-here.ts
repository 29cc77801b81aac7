/** Runs commands of `postern` in this process, for tests of what a command does: to start a program takes a second each time. */
import { Command } from 'commander'
import { Failure } from '../../src/cli/command-failure.ts'
import { run } from '../../src/cli/program.ts'
import { openServer, type ReadSettings } from '../../src/cli/serve-listeners.ts'
import { addSettingsFlags, settingsOf } from '../../src/cli/settings-flags.ts'
import { startFault } from '../../src/cli/start-fault.ts'
import { testTerminal } from '../../src/cli/testing/test-terminal.ts'
import { createLog } from '../../src/lib/log/create-log.ts'
import { startServer } from '../../src/server/compose/open-server.ts'
import { SettingsError } from '../../src/server/config/settings-error.ts'
import { type Ended, type Run, type ServeOptions, serveArgs } from './server-process.ts'

type Outcome = Pick<Ended, 'code' | 'out' | 'err'>

/** Runs a command that ends by itself, other than `serve`. */
export async function posternHere(args: readonly string[], { env = {} }: Pick<Run, 'env'> = {}): Promise<Outcome> {
  const terminal = testTerminal({ env, cwd: '/' })
  const code = await run(args, terminal)
  return { code, ...terminal.printed }
}

/** What `postern serve` prints when it cannot start, and its exit code. */
export async function refusedHere(options: ServeOptions): Promise<Outcome> {
  const terminal = testTerminal({ env: options.env ?? {}, cwd: '/' })
  const command = addSettingsFlags(new Command('serve')).exitOverride()
  command.parse(serveArgs(options).slice(1), { from: 'user' })
  try {
    await startAndStop((how) => settingsOf(command, terminal, how))
  } catch (error) {
    if (error instanceof Failure) return { code: error.exitCode, out: '', err: line(error.message) }
    if (error instanceof SettingsError) return { code: 2, out: '', err: error.problems.map(line).join('') }
    throw error
  }
  return { code: 0, out: 'Listening', err: '' }
}

/** Like `serve`, without what is there once in a process: its signals, its log and its exit. */
async function startAndStop(read: ReadSettings): Promise<void> {
  const log = createLog({ level: 'silent', format: 'json', destination: { write() {} } })
  const { settings, listeners, descriptors } = await openServer(read, { log })
  const server = await startServer(settings, { log, listeners, descriptors }).catch(async (cause: unknown) => {
    listeners.close()
    await descriptors.stop()
    throw new Failure(`Postern cannot start: ${startFault(cause, settings)}`, { cause })
  })
  await server.stop()
}

/** As the program prints it. */
function line(message: string): string {
  return `error: ${message}\n`
}
