/** `postern serve`: runs the server until a signal ends it. */
import { Command } from 'commander'
import type { Settings } from '../config/read.ts'
import { createLog, flushLog, type Logger } from '../lib/log/log.ts'
import type { RunningServer } from '../server.ts'
import { Failure } from './failure.ts'
import { firstStartBanner, webAddress } from './first-start.ts'
import { hasLauncher } from './launcher.ts'
import { logProcess } from './process-log.ts'
import { addSettingsFlags, settingsOf } from './settings-flags.ts'
import { type SignalSource, stopSignal } from './signals.ts'
import { startFault } from './start-fault.ts'
import { tellSystemd } from './tell-systemd.ts'
import type { Terminal } from './terminal.ts'

/** How long the last lines of the log may take, in milliseconds: its reader may have stalled. */
const LAST_LINES_MS = 1000

export interface ServeParts {
  readonly start: (settings: Settings, around: { log: Logger }) => Promise<RunningServer>
  readonly signals: SignalSource
  readonly exit: (code: number) => void
  /** Takes up what the process would print by itself. */
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
    const settings = settingsOf(command, terminal)
    const { startServer } = await import('../server.ts')
    await serve(settings, terminal, {
      start: startServer,
      signals: process,
      exit: (code) => process.exit(code),
      logProcess,
    })
  })
}

/** Starts the server, says where it is, and stops it on a signal. */
export async function serve(
  settings: Settings,
  terminal: Terminal,
  { start, signals, exit, ...parts }: ServeParts,
): Promise<void> {
  const log = createLog({ level: settings.logLevel, format: settings.logFormat })
  parts.logProcess(log)
  // A server outlives whoever reads what it prints.
  terminal.onOutFailed((err) => log.warn({ err }, notShown))
  // Heard from the beginning, so that a signal during a slow start is not lost.
  const stop = stopSignal({ source: signals, echoes: hasLauncher(), insist: () => exit(1) })
  const server = await start(settings, { log }).catch((cause: unknown) => {
    throw new Failure(`Postern cannot start: ${startFault(cause, settings)}`, { cause })
  })
  if (server.firstStart) terminal.out(firstStartBanner(server.firstStart, server.addresses, settings))
  const { api, metrics, agents, ssh, https, http } = server.addresses
  terminal.out(`SSH: ${ssh}, host key ${server.sshHostKey}\n`)
  terminal.out(
    `Listening: API ${webAddress(api)}, metrics ${webAddress(metrics)}, agents ${agents}, HTTPS ${https}, HTTP ${http}\n`,
  )
  tellSystemd('READY=1', { env: terminal.env, log })
  await stop
  tellSystemd('STOPPING=1', { env: terminal.env, log })
  await server.stop()
  await flushLog(log, LAST_LINES_MS)
  exit(0)
}

const notShown =
  'standard output cannot be written; after a first start, make a key with `postern admin create-key` if it was not shown'
