/** Runs an agent until a signal, a command from the server, or a refusal ends it. */

import { spawnSync } from 'node:child_process'
import { isatty } from 'node:tty'
import { Agent } from '../../agent/agent.ts'
import { AgentFault } from '../../agent/agent-fault.ts'
import type { AgentConfig } from '../../agent/config/connection.ts'
import type { TunnelPlans } from '../../agent/config/tunnel-options.ts'
import { Inspector } from '../../agent/inspect/inspector.ts'
import { openTunnel } from '../../agent/open-tunnel.ts'
import { type InstalledRelease, installedUpdate, versionsFolder } from '../../agent/update/installed.ts'
import { packageFile, packageVersion } from '../../lib/files/package-file.ts'
import { printable } from '../../lib/text/printable.ts'
import { Failure, misuse } from '../command-failure.ts'
import { hasLauncher } from '../launcher.ts'
import { eachSignal, type SignalSource, stopSignal } from '../signals.ts'
import type { Terminal } from '../terminal.ts'
import { agentCommands } from './commands.ts'
import type { Output } from './connection-flags.ts'
import { openInspector } from './inspect.ts'
import { linesDisplay } from './lines.ts'
import { type Reloaded, reloadAgent } from './reload.ts'
import { processScreen, type Screen } from './screen.ts'

export interface AgentJob {
  readonly config: AgentConfig
  readonly tunnels: readonly TunnelPlans[]
  readonly output: Output
  /** Reads the configuration file again; rejects with what is wrong. Omitted if the tunnel is described by flags. */
  readonly again?: () => Promise<{ readonly config: AgentConfig; readonly tunnels: readonly TunnelPlans[] }>
}

export interface RunParts {
  readonly signals: SignalSource
  readonly exit: (code: number) => void
  readonly screen: () => Screen
  /** Whether it was started at a terminal, and should end with it; a service has none. */
  readonly isAttended: boolean
  /** Replaces this process with another one. */
  readonly become: (launcher: string) => void
  readonly version: string
}

type Outcome = 'stop' | 'restart' | 'nothing left' | 'nobody reads'

const STDIN = 0

/** The exit code of a program that wrote to a pipe without a reader: 128 plus the number of SIGPIPE. */
const NOBODY_READS = 141

/** How long writing the last lines may take, in milliseconds: their reader may have stalled. */
const LAST_LINES_MS = 1000

export async function runAgent(
  { config, tunnels, output, again }: AgentJob,
  terminal: Terminal,
  given: Partial<RunParts> = {},
): Promise<void> {
  const parts: RunParts = {
    signals: process,
    exit: (code) => process.exit(code),
    screen: processScreen,
    isAttended: isatty(STDIN),
    become: (launcher) => become(launcher, process.argv.slice(2)),
    version: packageVersion(),
    ...given,
  }
  const { authtoken } = config
  if (!authtoken) throw misuse(noAuthtoken)
  const update = (): InstalledRelease | undefined =>
    config.update && config.updateChecks ? installedUpdate(versionsFolder(terminal.env), parts.version) : undefined
  const newer = update()
  if (newer) return parts.become(newer.launcher)

  const outcome = Promise.withResolvers<Outcome>()
  const stop = stopSignal({ source: parts.signals, echoes: hasLauncher(), insist: () => parts.exit(1) })
  void stop.then(() => outcome.resolve('stop'))
  const hangup = eachSignal(parts.signals, 'SIGHUP')
  // A closed pipe ends the agent. Other faults, such as a full disk, only lose lines.
  terminal.onOutFailed(({ code }) => {
    if (code === 'EPIPE') outcome.resolve('nobody reads')
  })
  const isViewed = output.format === 'auto' && terminal.isTTY
  const inspector = config.inspectListen ? new Inspector() : undefined
  const agent = new Agent({
    ...config,
    authtoken,
    version: parts.version,
    isWatched: isViewed,
    inspector,
    commands: agentCommands(config, {
      env: terminal.env,
      version: parts.version,
      onStop: () => outcome.resolve('stop'),
      onRestart: () => outcome.resolve('restart'),
      onUpdate: (result) => display.updated(result),
    }),
    onEvent(event) {
      display.event(event)
      inspector?.event(event)
      if (event.type === 'tunnel-stopped' && agent.tunnels.size === 0) outcome.resolve('nothing left')
    },
  })
  const display = isViewed
    ? (await import('./view.ts')).viewDisplay({
        agent,
        config,
        version: parts.version,
        screen: parts.screen(),
        env: terminal.env,
      })
    : linesDisplay({ openLines: terminal.openLines, ...output })
  const { version } = parts
  const { inspectListen: address } = config
  const inspecting = address && inspector ? openInspector({ address, agent, inspector, version, display }) : undefined
  const close = async (): Promise<void> => {
    display.close()
    await Promise.all([agent.close(), inspecting?.then((server) => server?.close()).catch(() => {})])
    await display.shown(LAST_LINES_MS)
  }
  try {
    const opening = Promise.all([openAll(agent, tunnels), inspecting])
    // If a signal closes the agent meanwhile, this rejection is of no interest.
    opening.catch(() => {})
    let reloading = opening.catch(() => {})
    const isOther = (name: string): boolean => inspector?.hasStarted(name) ?? false
    const tell = (line: Reloaded): void => display.reloaded(line)
    hangup.each(() => {
      if (parts.isAttended) outcome.resolve('stop')
      else reloading = reloading.then(() => reloadAgent({ agent, running: config, again, tell, isOther }))
    })
    const ended = await Promise.race([outcome.promise, opening.then(() => outcome.promise)])
    await close()
    if (ended === 'nobody reads') return parts.exit(NOBODY_READS)
    if (ended === 'nothing left') throw new Failure('the server stopped the last tunnel')
    if (ended === 'restart') parts.become(update()?.launcher ?? packageFile('bin/postern.js'))
    else parts.exit(0)
  } catch (error) {
    await close()
    if (!(error instanceof AgentFault)) throw error
    throw new Failure(printable(sentence(error)), { cause: error })
  }
}

const noAuthtoken =
  'no authtoken: run `postern login`, set POSTERN_AUTHTOKEN or give --authtoken. The first start of ' +
  '`postern serve` prints one; `postern api credentials create` makes another'

async function openAll(agent: Agent, tunnels: readonly TunnelPlans[]): Promise<void> {
  await agent.start({ patient: true })
  await Promise.all(tunnels.map((plans) => openTunnel(agent, plans)))
}

function sentence({ code, message, serverCode }: AgentFault): string {
  const said = code === 'refused' ? `the server refused: ${message.replaceAll('\n', ' ')}` : message
  return serverCode === '' ? said : `${said} (${serverCode})`
}

/** Starts `launcher` with Node in place of this process. Everything it holds open must be closed before. */
export function become(launcher: string, args: readonly string[]): void {
  const argv = [...process.execArgv, launcher, ...args]
  // Under a launcher, the launcher starts the new process, since it has to know its child.
  if (hasLauncher()) process.send?.({ start: launcher }, () => process.exit(0))
  // The process id stays the same, so a service manager keeps track of it.
  else if (process.execve) process.execve(process.execPath, [process.execPath, ...argv], process.env)
  else process.exit(spawnSync(process.execPath, argv, { stdio: 'inherit' }).status ?? 1)
}
