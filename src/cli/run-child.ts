/** `postern run-control` and `postern run-worker`: the processes that `postern serve --workers` starts. */
import { getPriority, setPriority } from 'node:os'
import { Command } from 'commander'
import { packageVersion } from '../lib/files/package-file.ts'
import { runControl } from '../server/supervisor/control-child.ts'
import { ownParent } from '../server/supervisor/own-parent.ts'
import type { ChildParts } from '../server/supervisor/supervised.ts'
import { runWorker } from '../server/supervisor/worker-child.ts'
import { misuse } from './command-failure.ts'
import { logProcess } from './process-log.ts'
import { startFault } from './start-fault.ts'
import { collectLoaded } from './v8-flags.ts'

/** The control process yields to workers where cores are scarce: visitors come before callers of the API. */
const CONTROL_NICENESS = 5

/** A server that was started with `nice` stays as nice, since only a privileged user may raise a priority. */
export function controlNiceness(given: number): number {
  return Math.max(given, CONTROL_NICENESS)
}

export function runControlCommand(): Command {
  return new Command('run-control').action(() => {
    setPriority(controlNiceness(getPriority()))
    runControl(async () => {
      const { startControl } = await import('../server/compose/control-process.ts')
      collectLoaded()
      return startControl
    }, childParts())
  })
}

export function runWorkerCommand(): Command {
  return new Command('run-worker').action(() => {
    runWorker(async () => {
      const { startWorker } = await import('../server/compose/worker-process.ts')
      collectLoaded()
      return startWorker
    }, childParts())
  })
}

function childParts(): ChildParts {
  const parent = ownParent()
  if (!parent) throw misuse('this command is run by `postern serve --workers` only')
  return { ...parent, logProcess, version: packageVersion(), fault: startFault }
}
