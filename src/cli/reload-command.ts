/** What SIGHUP does to a running server: it reads the settings again and applies those that can change without a restart. */

import type { Logger } from '../lib/log/create-log.ts'
import { type Changes, changesOf } from '../server/config/changes.ts'
import type { Settings } from '../server/config/read-settings.ts'
import { SettingsError } from '../server/config/settings-error.ts'

export interface Reloading {
  readonly running: Settings
  /** Throws `SettingsError`. */
  readonly read: () => Settings
  /** Resolves when the settings are in effect, with the processes that do not use them yet. */
  readonly apply: (settings: Settings) => Promise<readonly string[]>
  readonly log: Logger
}

interface ReloadEnd {
  /** In effect from here on. */
  readonly settings: Settings
  /** What could not be done, and why. */
  readonly fault?: string
  /** Settings whose change needs a restart. */
  readonly needsRestart: readonly string[]
}

/** Resolves when the new settings are in effect. Faulty ones never end the server. */
export async function reload({ running, read, apply, log }: Reloading): Promise<ReloadEnd> {
  let changes: Changes
  try {
    changes = changesOf(running, read())
  } catch (error) {
    if (error instanceof SettingsError) log.error({ problems: error.problems }, faulty)
    else log.error({ err: error }, faulty)
    return { settings: running, fault: settingsFault(error), needsRestart: [] }
  }
  const { settings, taken, pending } = changes
  let late: readonly string[]
  try {
    late = await apply(settings)
  } catch (error) {
    log.error({ err: error }, notApplied)
    return { settings, fault: notApplied, needsRestart: pending }
  }
  const level = pending.length > 0 || late.length > 0 ? 'warn' : 'info'
  const tell = (): void => {
    const needs = pending.length > 0 && { needs_restart: pending }
    if (late.length > 0) log.warn({ changed: taken, ...needs, late }, notByAll)
    else if (needs) log.warn({ changed: taken, ...needs }, 'settings reloaded; some changes need a restart')
    else log.info({ changed: taken }, 'settings reloaded')
  }
  // Logged at the more verbose of the old and new levels, so that the change is not missed.
  const isHeard = log.isLevelEnabled(level)
  if (isHeard) tell()
  log.level = settings.logLevel
  if (!isHeard) tell()
  return { settings, needsRestart: pending }
}

/** Why settings cannot be read, in one line. */
export function settingsFault(error: unknown): string {
  if (error instanceof SettingsError) return error.problems.join('; ')
  return error instanceof Error ? error.message : String(error)
}

const faulty = 'settings could not be reloaded; nothing has changed'
const notByAll = 'settings were reloaded but some processes do not use them yet; they will when they respond again'
const notApplied = 'settings were reloaded but not all could be applied; restart the server'
