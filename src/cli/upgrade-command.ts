/** `postern upgrade`: switches the running server to the code and the settings that are on disk now. */
import { Command } from 'commander'
import { printable } from '../lib/text/printable.ts'
import type { UpgradeStep } from '../server/supervisor/upgrade-server.ts'
import { Failure } from './command-failure.ts'
import type { UpgradeOutcome } from './live-changes.ts'
import { addSettingsFlags, settingsOf } from './settings-flags.ts'
import type { Terminal } from './terminal.ts'
import { NoServer, orderUpgrade, upgradeSocketPath } from './upgrade-socket.ts'

const examples = `
Install the new version first, or change the settings. New processes are started beside the running ones, and take over
when they are ready; if they do not start, nothing changes. The command reaches the server through its data folder, so run
it on the same machine, as the same user or as root.

A server of one process (--workers 0) only reloads its settings; new code needs a restart.

Examples:
  postern upgrade
  postern upgrade --data-dir /var/lib/postern`

const steps: Readonly<Record<UpgradeStep, string>> = {
  starting: 'Starting new processes beside the running ones.',
  control: 'Handing over the database.',
  workers: 'Preparing the new workers.',
  back: 'Going back to the old processes.',
}

export function upgradeCommand(terminal: Terminal): Command {
  const command = new Command('upgrade')
  addSettingsFlags(command, { only: ['data-dir'] })
  return command.addHelpText('after', examples).action(async () => {
    const { dataDir } = settingsOf(command, terminal)
    const outcome = await orderUpgrade(dataDir, (step) => terminal.err(`${steps[step]}\n`)).catch((cause: unknown) => {
      throw notReached(cause, dataDir)
    })
    terminal.out(`${describe(outcome)}\n`)
  })
}

function describe(outcome: UpgradeOutcome): string {
  switch (outcome.type) {
    case 'failed':
      throw new Failure(`nothing has changed: ${printable(outcome.reason)}`)
    case 'upgraded': {
      const { from, to } = outcome
      const what = from === to ? `Restarted version ${to}` : `Upgraded from ${from} to ${to}`
      return `${what}. The old processes finish what is open.`
    }
    case 'reloaded': {
      const { needsRestart } = outcome
      const settings = needsRestart.length === 0 ? '' : ` and these settings: ${needsRestart.join(', ')}`
      return `Settings were reloaded. A server of one process needs a restart for its code${settings}.`
    }
  }
}

function notReached(cause: unknown, dataDir: string): Failure {
  const why = cause instanceof Error ? cause.message : String(cause)
  const path = printable(upgradeSocketPath(dataDir))
  if (!(cause instanceof NoServer)) return new Failure(`${path}: ${printable(why)}`, { cause })
  const hint = 'give the data folder of the running server with --data-dir'
  return new Failure(`no server is listening at ${path}; ${hint}`, { cause })
}
