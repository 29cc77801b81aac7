/** `postern serve`: runs the server until a signal ends it. */
import { Command } from 'commander'
import type { Settings } from '../config/read.ts'
import { createLog, type Logger } from '../lib/log.ts'
import type { RunningServer } from '../server.ts'
import { Failure } from './failure.ts'
import { firstStartBanner, webAddress } from './first-start.ts'
import { hasLauncher } from './launcher.ts'
import { addSettingsFlags, settingsOf } from './settings-flags.ts'
import { type SignalSource, stopSignal } from './signals.ts'
import { startFault } from './start-fault.ts'
import type { Terminal } from './terminal.ts'

export interface ServeParts {
  readonly start: (settings: Settings, around: { log: Logger }) => Promise<RunningServer>
  readonly signals: SignalSource
  readonly exit: (code: number) => void
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
    })
  })
}

/** Starts the server, says where it is, and stops it on a signal. */
export async function serve(
  settings: Settings,
  terminal: Terminal,
  { start, signals, exit }: ServeParts,
): Promise<void> {
  const log = createLog({ level: settings.logLevel, format: settings.logFormat })
  // Heard from the beginning, so that a signal during a slow start is not lost.
  const stop = stopSignal({ source: signals, echoes: hasLauncher(), insist: () => exit(1) })
  const server = await start(settings, { log }).catch((cause: unknown) => {
    throw new Failure(`Postern cannot start: ${startFault(cause, settings)}`, { cause })
  })
  if (server.firstStart) terminal.out(firstStartBanner(server.firstStart, server.addresses, settings))
  const { api, metrics, agents, https, http } = server.addresses
  terminal.out(
    `Listening: API ${webAddress(api)}, metrics ${webAddress(metrics)}, agents ${agents}, HTTPS ${https}, HTTP ${http}\n`,
  )
  await stop
  await server.stop()
  exit(0)
}
