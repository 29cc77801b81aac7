/** `postern serve`: runs the server until a signal ends it. */
import { Command } from 'commander'
import type { Settings } from '../config/read.ts'
import { createLog, flushLog, type Logger } from '../lib/log/log.ts'
import type { RunningServer, ServerOptions } from '../server.ts'
import { commandName } from './command-name.ts'
import { Failure } from './failure.ts'
import { firstStartBanner, webAddress } from './first-start.ts'
import { hasLauncher } from './launcher.ts'
import { logProcess } from './process-log.ts'
import { reload } from './reload.ts'
import { type OpenServer, openServer, type ReadSettings } from './serve-listeners.ts'
import { addSettingsFlags, settingsOf } from './settings-flags.ts'
import { hangups, type SignalSource, stopSignal } from './signals.ts'
import { startFault } from './start-fault.ts'
import { tellSystemd } from './tell-systemd.ts'
import type { Terminal } from './terminal.ts'

/** How long writing the last log lines may take, in milliseconds: their reader may have stalled. */
const LAST_LINES_MS = 1000

export interface ServeParts {
  /** Opens the listeners. */
  readonly open: (read: ReadSettings, around: { log: Logger }) => Promise<OpenServer>
  readonly start: (settings: Settings, around: ServerOptions) => Promise<RunningServer>
  readonly signals: SignalSource
  readonly exit: (code: number) => void
  /** Logs what Node would print by itself. */
  readonly logProcess: (log: Logger) => void
}

const examples = `
Examples:
  postern serve
  postern serve --data-dir /var/lib/postern --api-listen 127.0.0.1:7400
  POSTERN_DATABASE_URL=postgres://postern@db.example.com/postern postern serve

Every flag is also a variable (POSTERN_DATA_DIR) and a key of postern.yml (data_dir).`

export function serveCommand(terminal: Terminal): Command {
  const command = addSettingsFlags(new Command('serve').description('run the server'))
  return command.addHelpText('after', examples).action(async () => {
    await serve((how) => settingsOf(command, terminal, how), terminal, {
      open: openServer,
      // Loaded after the listeners are open, since this takes longer than everything before it.
      start: async (...given) => (await import('../server.ts')).startServer(...given),
      signals: process,
      exit: (code) => process.exit(code),
      logProcess,
    })
  })
}

/** Starts the server, prints its addresses, reloads its settings on SIGHUP, and stops it on SIGTERM or SIGINT. */
export async function serve(
  read: ReadSettings,
  terminal: Terminal,
  { open, start, signals, exit, ...parts }: ServeParts,
): Promise<void> {
  const { logLevel, logFormat } = read()
  const log = createLog({ level: logLevel, format: logFormat })
  parts.logProcess(log)
  // A server goes on when its standard output is closed.
  terminal.onOutFailed((err) => log.warn({ err }, notShown))
  // From the beginning, so that a signal during a slow start is not lost.
  const stop = stopSignal({ source: signals, echoes: hasLauncher(), insist: () => exit(1) })
  const hangup = hangups(signals)
  const { settings, read: readAgain, listeners, descriptors } = await open(read, { log })
  const server = await start(settings, { log, listeners, descriptors }).catch(async (cause: unknown) => {
    listeners.close()
    await descriptors.stop()
    throw new Failure(`Postern cannot start: ${startFault(cause, settings)}`, { cause })
  })
  if (server.firstStart) {
    terminal.out(firstStartBanner(server.firstStart, server.addresses, settings, commandName(terminal)))
  }
  const { api, metrics, agents, ssh, https, http } = server.addresses
  if (listeners.handed.length > 0) terminal.out(`Sockets from the service manager: ${listeners.handed.join(', ')}\n`)
  terminal.out(`SSH: ${ssh}, host key ${server.sshHostKey}\n`)
  terminal.out(
    `Listening: API ${webAddress(api)}, metrics ${webAddress(metrics)}, agents ${agents}, HTTPS ${https}, HTTP ${http}\n`,
  )
  tellSystemd('READY=1', { env: terminal.env, log })
  let running = settings
  hangup.each(() => {
    running = reload({ running, read: readAgain, apply: (next) => server.use(next), log })
  })
  await stop
  tellSystemd('STOPPING=1', { env: terminal.env, log })
  await server.stop()
  await flushLog(log, LAST_LINES_MS)
  exit(0)
}

const notShown =
  'standard output cannot be written; after a first start, make a key with `postern admin create-key` if it was not shown'
