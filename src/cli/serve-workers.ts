/** `postern serve --workers`: this process supervises those that serve. */

import { type Logger, lineWriter, lossLine } from '../lib/log/create-log.ts'
import { adoptHanded, checkHandedPorts, handedAddresses, handedNames } from '../server/config/listeners.ts'
import { launcher } from '../server/supervisor/launch.ts'
import { adoptSocket, missingInNode } from '../server/supervisor/socket-handle.ts'
import { startSupervisor } from '../server/supervisor/supervisor.ts'
import { Failure } from './command-failure.ts'
import type { Serving } from './serve-command.ts'
import { ownHanded, type ReadSettings } from './serve-listeners.ts'
import type { LineOutput, Terminal } from './terminal.ts'

/** Resolves when all processes are ready. Throws `SettingsError`, or a `Failure` that says which cannot start. */
export async function serveWorkers(
  read: ReadSettings,
  { log, terminal }: { readonly log: Logger; readonly terminal: Terminal },
): Promise<Serving> {
  const missing = missingInNode()
  if (missing !== undefined) throw cannotStart(missing)
  const opened = await adoptHanded(ownHanded(log), async ({ fd }) => adoptSocket(fd))
  const handed = handedAddresses(opened)
  try {
    const settings = read({ handed })
    checkHandedPorts(settings, opened.tcp.keys())
    const launch = launcher({ args: childArgs, env: terminal.env, out: outWriter(terminal), err: lineWriter(log) })
    const server = await startSupervisor(settings, { log, launch, handed: opened }).catch((cause: unknown) => {
      throw cannotStart(cause instanceof Error ? cause.message : String(cause), cause)
    })
    return {
      settings,
      read: () => read({ handed, isServing: true }),
      handed: handedNames(opened),
      server,
      upgrade: (next, onStep) =>
        server.upgrade(next, (step) => {
          log.debug({ step }, 'upgrade step')
          onStep(step)
        }),
    }
  } catch (error) {
    opened.close()
    throw error
  }
}

/** Runs the same program with another command. */
function childArgs(role: string): readonly string[] {
  return [...process.execArgv, process.argv[1] ?? '', `run-${role}`]
}

/** Children do not print to stdout themselves, but what a library prints there must not be lost. */
function outWriter(terminal: Terminal): (lines: string) => void {
  let output: LineOutput | undefined
  return (lines) => {
    output ??= terminal.openLines(lossLine)
    output.write(lines)
  }
}

function cannotStart(why: string, cause?: unknown): Failure {
  return new Failure(`Postern cannot start: ${why}`, { cause })
}
