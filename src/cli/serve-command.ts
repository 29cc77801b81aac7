/** `postern serve`: runs the server until a signal ends it. */
import { Command } from 'commander'
import { createLog, flushLog, type Logger } from '../lib/log/create-log.ts'
import type { RunningServer, ServerOptions } from '../server/compose/open-server.ts'
import type { Settings } from '../server/config/read-settings.ts'
import { Failure } from './command-failure.ts'
import { commandName } from './command-name.ts'
import { hasLauncher } from './launcher.ts'
import { LiveChanges, type Upgrade } from './live-changes.ts'
import { firstStartBanner, webAddress } from './print-first-start.ts'
import { logProcess } from './process-log.ts'
import { type OpenServer, openServer, type ReadSettings } from './serve-listeners.ts'
import { addSettingsFlags, settingsOf } from './settings-flags.ts'
import { eachSignal, type SignalSource, stopSignal } from './signals.ts'
import { startFault } from './start-fault.ts'
import { tellSystemd } from './tell-systemd.ts'
import type { Terminal } from './terminal.ts'
import { type OrdersOptions, takeOrders } from './upgrade-socket.ts'

/** How long writing the last log lines may take, in milliseconds: their reader may have stalled. */
const LAST_LINES_MS = 1000

/** A server that serves, in one process or several. */
export interface Serving {
  readonly settings: Settings
  /** Reads the settings again. */
  readonly read: () => Settings
  /** What a service manager handed in. */
  readonly handed: readonly string[]
  readonly server: RunningServer
  /** Switches to the code and settings that are on disk; a server of one process cannot. */
  readonly upgrade?: Upgrade
}

export interface ServeParts {
  /** Starts a server of several processes. */
  readonly supervise: (read: ReadSettings, around: { log: Logger; terminal: Terminal }) => Promise<Serving>
  /** Opens the listeners of a server of one process. */
  readonly open: (read: ReadSettings, around: { log: Logger }) => Promise<OpenServer>
  readonly start: (settings: Settings, around: ServerOptions) => Promise<RunningServer>
  readonly signals: SignalSource
  readonly exit: (code: number) => void
  /** Lets `postern upgrade` reach this server; returns a function that stops it. */
  readonly takeOrders: (orders: OrdersOptions) => Promise<() => void>
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
  const command = addSettingsFlags(new Command('serve'))
  return command.addHelpText('after', examples).action(async () => {
    await serve((how) => settingsOf(command, terminal, how), terminal, {
      supervise: async (...given) => (await import('./serve-workers.ts')).serveWorkers(...given),
      open: openServer,
      // Loaded after the listeners are open, since this takes longer than everything before it.
      start: async (...given) => (await import('../server/compose/open-server.ts')).startServer(...given),
      signals: process,
      exit: (code) => process.exit(code),
      takeOrders,
      logProcess,
    })
  })
}

/** Starts the server and prints its addresses; SIGHUP reloads its settings, SIGUSR2 upgrades it, SIGTERM and SIGINT stop it. */
export async function serve(
  read: ReadSettings,
  terminal: Terminal,
  { signals, exit, ...parts }: ServeParts,
): Promise<void> {
  const { logLevel, logFormat, workers } = read()
  const log = createLog({ level: logLevel, format: logFormat })
  parts.logProcess(log)
  // A server goes on when its standard output is closed.
  terminal.onOutFailed((err) => log.warn({ err }, notShown))
  // Registered first, so that a signal during a slow start is not lost.
  const stop = stopSignal({ source: signals, echoes: hasLauncher(), insist: () => exit(1) })
  const hangup = eachSignal(signals, 'SIGHUP')
  const order = eachSignal(signals, 'SIGUSR2')
  const serving = workers > 0 ? await parts.supervise(read, { log, terminal }) : await serveAlone(read, log, parts)
  const { settings, handed, server } = serving
  if (server.firstStart) {
    terminal.out(firstStartBanner(server.firstStart, server.addresses, settings, commandName(terminal)))
  }
  const { api, metrics, agents, ssh, https, http, cluster } = server.addresses
  if (handed.length > 0) terminal.out(`Sockets from the service manager: ${handed.join(', ')}\n`)
  terminal.out(`SSH: ${ssh}, host key ${server.sshHostKey}\n`)
  terminal.out(
    `Listening: API ${webAddress(api, settings.apiTls ? 'https' : 'http')}, metrics ${webAddress(metrics)}, agents ${agents}, HTTPS ${https}, HTTP ${http}\n`,
  )
  if (cluster !== undefined) terminal.out(`Other nodes: ${cluster}, this node is ${settings.nodeName}\n`)
  const changes = new LiveChanges({ ...serving, apply: (next) => server.use(next), log })
  const endOrders = await parts.takeOrders({
    dataDir: settings.dataDir,
    upgrade: (onStep) => changes.upgrade(onStep),
    log,
  })
  tellSystemd('READY=1', { env: terminal.env, log })
  hangup.each(() => void changes.reload())
  order.each(() => void changes.upgrade())
  await stop
  tellSystemd('STOPPING=1', { env: terminal.env, log })
  endOrders()
  await server.stop()
  await flushLog(log, LAST_LINES_MS)
  exit(0)
}

/** Starts a server in this process. */
async function serveAlone(
  readFirst: ReadSettings,
  log: Logger,
  { open, start }: Pick<ServeParts, 'open' | 'start'>,
): Promise<Serving> {
  const { settings, read, listeners, descriptors } = await open(readFirst, { log })
  const server = await start(settings, { log, listeners, descriptors }).catch(async (cause: unknown) => {
    listeners.close()
    await descriptors.stop()
    throw new Failure(`Postern cannot start: ${startFault(cause, settings)}`, { cause })
  })
  return { settings, read, handed: listeners.handed, server }
}

const notShown =
  'standard output cannot be written; if this was the first start and no API key was shown, create one with `postern admin create-key`'
