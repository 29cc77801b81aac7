/** What SIGHUP does to a running server: the settings are read again, and what can change meanwhile is taken over. */
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

/** Gives the settings that hold from here on; nothing that is wrong with the new ones ends the server. */
export function reload({ running, read, apply, log }: Reloading): Settings {
  let changes: Changes
  try {
    changes = changesOf(running, read())
  } catch (error) {
    if (error instanceof SettingsError) log.error({ problems: error.problems }, faulty)
    else log.error({ err: error }, faulty)
    return running
  }
  const { settings, taken, pending } = changes
  const tell = (): void => {
    if (pending.length > 0)
      log.warn({ changed: taken, needs_restart: pending }, 'settings read again; some need a restart')
    else log.info({ changed: taken }, 'settings read again')
  }
  // Told by the more talkative of the two levels.
  const isHeard = log.isLevelEnabled('info')
  if (isHeard) tell()
  try {
    apply(settings)
    log.level = settings.logLevel
  } catch (error) {
    log.error({ err: error }, 'settings were read again but cannot all be taken over; restart the server')
  }
  if (!isHeard) tell()
  return settings
}

const faulty = 'settings cannot be read again; nothing has changed'
