/** What SIGUSR2 and `postern upgrade` do to a running server: it switches to the code and the settings that are on disk now. */

import type { Logger } from '../lib/log/create-log.ts'
import type { Settings } from '../server/config/read-settings.ts'
import { SettingsError } from '../server/config/settings-error.ts'
import type { UpgradeStep } from '../server/supervisor/upgrade-server.ts'
import { type Reloading, reload, settingsFault } from './reload-command.ts'

/** Switches to what is on disk; if it rejects, the error says why, and nothing has changed. */
export type Upgrade = (
  settings: Settings,
  onStep: (step: UpgradeStep) => void,
) => Promise<{ readonly from: string; readonly to: string }>

interface UpgradeRunning extends Reloading {
  /** Undefined for a server of one process. */
  readonly upgrade: Upgrade | undefined
  readonly onStep: (step: UpgradeStep) => void
}

export type UpgradeOutcome =
  | { readonly type: 'upgraded'; readonly from: string; readonly to: string }
  /** Of a server of one process, whose code cannot change while it runs. */
  | { readonly type: 'reloaded'; readonly needsRestart: readonly string[] }
  | { readonly type: 'failed'; readonly reason: string }

interface UpgradeEnd {
  readonly outcome: UpgradeOutcome
  /** In effect from here on. */
  readonly settings: Settings
}

/** Never ends the server, whatever goes wrong. */
export async function upgradeRunning({ upgrade, onStep, ...reloading }: UpgradeRunning): Promise<UpgradeEnd> {
  const { running, read, log } = reloading
  if (!upgrade) return reloadAlone(reloading)
  try {
    const settings = read()
    log.info('upgrade begins: starting new processes beside the running ones')
    const { from, to } = await upgrade(settings, onStep)
    log.level = settings.logLevel
    log.info({ from, to }, 'upgrade done; the old processes finish what is open')
    return { outcome: { type: 'upgraded', from, to }, settings }
  } catch (error) {
    const reason = settingsFault(error)
    if (error instanceof SettingsError) log.error({ problems: error.problems }, failed)
    else log.error({ reason }, failed)
    return { outcome: { type: 'failed', reason }, settings: running }
  }
}

async function reloadAlone(reloading: Reloading): Promise<UpgradeEnd> {
  const log: Logger = reloading.log
  log.warn('a server of one process (`workers` is 0) cannot be upgraded while it runs; only its settings are reloaded')
  const { settings, fault, needsRestart } = await reload(reloading)
  if (fault !== undefined) return { outcome: { type: 'failed', reason: fault }, settings }
  return { outcome: { type: 'reloaded', needsRestart }, settings }
}

const failed = 'upgrade failed; nothing has changed'
