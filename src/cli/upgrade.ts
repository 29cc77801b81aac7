/** `postern upgrade`: has the server that runs go over to the code and the settings that are on disk now. */
import { Command } from 'commander'
import { printable } from '../lib/text/printable.ts'
import type { UpgradeStep } from '../supervisor/upgrade.ts'
import { Failure } from './failure.ts'
import { addSettingsFlags, settingsOf } from './settings-flags.ts'
import type { Terminal } from './terminal.ts'
import type { UpgradeOutcome } from './upgrade-running.ts'
import { NoServer, orderUpgrade, upgradeSocketPath } from './upgrade-socket.ts'

const examples = `
Install the new version first, or change the settings. What is on disk is started beside what runs, and takes over when it
is ready; if it does not come up, nothing changes. It reaches the server through its data directory, so it is run on the
same machine, as the same user or as root.

A server of one process (--workers 0) reads its settings again; its code changes with a restart.

Examples:
  postern upgrade
  postern upgrade --data-dir /var/lib/postern`

const steps: Readonly<Record<UpgradeStep, string>> = {
  starting: 'Starting what is on disk beside what runs.',
  control: 'Handing over the database.',
  workers: 'Getting the new workers ready.',
  back: 'Going back to what ran before.',
}

export function upgradeCommand(terminal: Terminal): Command {
  const command = new Command('upgrade').description('go over to the code and settings that are on disk, while it runs')
  addSettingsFlags(command, { only: ['data-dir'] })
  return command.addHelpText('after', examples).action(async () => {
    const { dataDir } = settingsOf(command, terminal)
    const outcome = await orderUpgrade(dataDir, (step) => terminal.err(`${steps[step]}\n`)).catch((cause: unknown) => {
      throw notReached(cause, dataDir)
    })
    terminal.out(`${told(outcome)}\n`)
  })
}

function told(outcome: UpgradeOutcome): string {
  switch (outcome.type) {
    case 'failed':
      throw new Failure(`nothing has changed: ${printable(outcome.reason)}`)
    case 'upgraded': {
      const { from, to } = outcome
      const what = from === to ? `Started anew: version ${to}` : `Upgraded from ${from} to ${to}`
      return `${what}. The former processes finish what is open.`
    }
    case 'reloaded': {
      const { needsRestart } = outcome
      const settings = needsRestart.length === 0 ? '' : ` and these settings: ${needsRestart.join(', ')}`
      return `Settings were read again. A server of one process needs a restart for its code${settings}.`
    }
  }
}

function notReached(cause: unknown, dataDir: string): Failure {
  const why = cause instanceof Error ? cause.message : String(cause)
  const path = printable(upgradeSocketPath(dataDir))
  if (!(cause instanceof NoServer)) return new Failure(`${path}: ${printable(why)}`, { cause })
  const hint = 'say with --data-dir where the data of the server is, as it was started'
  return new Failure(`no server answers at ${path}; ${hint}`, { cause })
}
