/** What SIGHUP does to a running server: it reads the settings again and applies those that can change without a restart. */
import { type Changes, changesOf } from '../config/changes.ts'
import type { Settings } from '../config/read.ts'
import { SettingsError } from '../config/settings-error.ts'
import type { Logger } from '../lib/log/log.ts'

export interface Reloading {
  readonly running: Settings
  /** Throws `SettingsError`. */
  readonly read: () => Settings
  readonly apply: (settings: Settings) => void
  readonly log: Logger
}

export interface ReloadEnd {
  /** In effect from here on. */
  readonly settings: Settings
  /** What could not be done, and why. */
  readonly fault?: string
  /** Settings whose change needs a restart. */
  readonly needsRestart: readonly string[]
}

/** Faulty new settings never end the server. */
export function reload({ running, read, apply, log }: Reloading): ReloadEnd {
  let changes: Changes
  try {
    changes = changesOf(running, read())
  } catch (error) {
    if (error instanceof SettingsError) log.error({ problems: error.problems }, faulty)
    else log.error({ err: error }, faulty)
    return { settings: running, fault: settingsFault(error), needsRestart: [] }
  }
  const { settings, taken, pending } = changes
  const tell = (): void => {
    if (pending.length > 0)
      log.warn({ changed: taken, needs_restart: pending }, 'settings reloaded; some changes need a restart')
    else log.info({ changed: taken }, 'settings reloaded')
  }
  // Logged at the more verbose of the old and new levels, so that the change is not missed.
  const isHeard = log.isLevelEnabled('info')
  if (isHeard) tell()
  try {
    apply(settings)
    log.level = settings.logLevel
  } catch (error) {
    log.error({ err: error }, notApplied)
    return { settings, fault: notApplied, needsRestart: pending }
  }
  if (!isHeard) tell()
  return { settings, needsRestart: pending }
}

/** Why settings cannot be read, in one line. */
export function settingsFault(error: unknown): string {
  if (error instanceof SettingsError) return error.problems.join('; ')
  return error instanceof Error ? error.message : String(error)
}

const faulty = 'settings cannot be reloaded; nothing has changed'
const notApplied = 'settings were reloaded but cannot all be applied; restart the server'
