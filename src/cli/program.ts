/** The command line: lists the commands, loads the one that was called, and turns its outcome into an exit code. */
import { type Argument, Command, CommanderError } from 'commander'
import { printable } from '../lib/text/printable.ts'
import { SettingsError } from '../server/config/settings-error.ts'
import { Failure, misuse } from './command-failure.ts'
import { commandName } from './command-name.ts'
import { group } from './group.ts'
import type { Terminal } from './terminal.ts'

interface Entry {
  readonly name: string
  readonly about: string
  /** Loaded on use, so that `postern version` need not load a web server. */
  readonly load: (terminal: Terminal) => Promise<Command>
}

const commands: readonly Entry[] = [
  command('serve', 'run the server', async (terminal) => (await import('./serve-command.ts')).serveCommand(terminal)),
  command('upgrade', 'switch the running server to the code and settings that are on disk', async (terminal) =>
    (await import('./upgrade-command.ts')).upgradeCommand(terminal),
  ),
  command('doctor', 'check the server on this machine, and say what to fix', async (terminal) =>
    (await import('./doctor-command.ts')).doctorCommand(terminal),
  ),
  command('http', 'give a web service on this machine a public address', async (terminal) =>
    (await import('./agent/tunnel-command.ts')).tunnelCommand('http', terminal),
  ),
  command('tcp', 'give a TCP service on this machine a public port', async (terminal) =>
    (await import('./agent/tunnel-command.ts')).tunnelCommand('tcp', terminal),
  ),
  command('tls', 'give a TLS service on this machine a public name', async (terminal) =>
    (await import('./agent/tunnel-command.ts')).tunnelCommand('tls', terminal),
  ),
  command('start', 'start tunnels of the configuration file', async (terminal) =>
    (await import('./agent/start.ts')).startCommand(terminal),
  ),
  command('login', 'save the server and authtoken that agents on this machine use', async (terminal) =>
    (await import('./agent/login.ts')).loginCommand(terminal),
  ),
  command('api', 'call the management API of a running server', async (terminal) =>
    (await import('./api-command.ts')).apiCommand(terminal),
  ),
  command('policy', 'test traffic policies', async (terminal) =>
    (await import('./policy-command.ts')).policyCommand(terminal),
  ),
  command('admin', 'manage users and keys directly in the database', async (terminal) =>
    (await import('./admin-command.ts')).adminCommand(terminal),
  ),
  command('backup', 'write the database and its key to one file, even while the server runs', async (terminal) =>
    (await import('./backup-command.ts')).backupCommand(terminal),
  ),
  command('restore', 'fill an empty database from a backup', async (terminal) =>
    (await import('./restore-command.ts')).restoreCommand(terminal),
  ),
  command('version', 'show the versions of Postern and Node', async (terminal) =>
    (await import('./version-command.ts')).versionCommand(terminal),
  ),
]

/** What the help does not list: each is run by another program. */
const hiddenCommands: readonly Entry[] = [
  command('docs', 'write the generated pages of the documentation', async (terminal) =>
    (await import('./docs-command.ts')).docsCommand(terminal),
  ),
  command('run-control', 'the process of `postern serve --workers` for the API and the database', async () =>
    (await import('./run-child.ts')).runControlCommand(),
  ),
  command('run-worker', 'a process of `postern serve --workers` for visitors and agents', async () =>
    (await import('./run-child.ts')).runWorkerCommand(),
  ),
]

function command(name: string, about: string, load: Entry['load']): Entry {
  return { name, about, load }
}

/** Runs one command to its end and returns the exit code: 0 for success, 1 for failure, 2 for wrong usage. */
export async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  try {
    const named = asNamed(args)
    const program = await load(named, terminal)
    await program.parseAsync(named, { from: 'user' })
    return 0
  } catch (error) {
    return report(error, terminal)
  }
}

/** The program with the command that `args` name; other commands are only listed, for the help. */
async function load(args: readonly string[], terminal: Terminal): Promise<Command> {
  const program = group(new Command('postern'))
    .description('A self-hosted tunnel and ingress platform.')
    .option('-V, --version', 'show the version')
    .addHelpText(
      'after',
      '\nExamples:\n  postern serve\n  postern http 3000\n  postern api api-keys list\n  postern serve --help',
    )
  const wanted = args.find((arg) => !arg.startsWith('-'))
  for (const entry of [...commands, ...hiddenCommands]) {
    const { name, about, load } = entry
    const command = name === wanted ? await load(terminal) : new Command(name)
    program.addCommand(command.description(command.description() || about), { hidden: hiddenCommands.includes(entry) })
  }
  prepare(program, terminal)
  return program
}

/** Takes what is written for a command or an option, such as `--version`, as that one. */
function asNamed([first, ...rest]: readonly string[]): readonly string[] {
  if (first === 'udp') throw misuse('UDP is not offered; `postern tcp` gives a TCP service a public port')
  if (first === '-V' || first === '--version') return ['version', ...rest]
  if (first === 'help') return [...rest, '--help']
  return first === undefined ? [] : [first, ...rest]
}

/** commander passes these settings on only to subcommands that it creates itself. */
function prepare(command: Command, terminal: Terminal): void {
  command
    .exitOverride()
    .configureOutput({ writeOut: terminal.out, writeErr: terminal.err })
    .configureHelp({ subcommandTerm: (sub) => [sub.name(), ...sub.registeredArguments.map(argument)].join(' ') })
  for (const each of command.commands) prepare(each, terminal)
}

function argument(given: Argument): string {
  return given.required ? `<${given.name()}>` : `[${given.name()}]`
}

function report(error: unknown, terminal: Terminal): number {
  // commander has already printed its own errors.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
  if (error instanceof SettingsError) {
    for (const problem of error.problems) terminal.err(`error: ${withCommandName(printable(problem), terminal)}\n`)
    return 2
  }
  if (error instanceof Failure) {
    terminal.err(`error: ${withCommandName(error.message, terminal)}\n`)
    return error.exitCode
  }
  terminal.err(`error: ${error instanceof Error ? error.stack : String(error)}\n`)
  return 1
}

/** Messages name commands as `postern …`; this prints them as they can be typed here, such as `npx postern …` in a clone. */
function withCommandName(message: string, terminal: Terminal): string {
  return message.replaceAll('`postern ', `\`${commandName(terminal)} `)
}
