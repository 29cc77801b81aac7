/** What changed in settings that were read again: what a running server applies, and what needs a restart. */
import { isDeepStrictEqual } from 'node:util'
import type { Settings } from './read-settings.ts'
import type { Setting } from './setting-kinds.ts'
import { table } from './settings-table.ts'

export interface Changes {
  /** The running settings, with those values of the new ones that can be applied. */
  readonly settings: Settings
  /** Names of settings whose new value is applied. */
  readonly taken: readonly string[]
  /** Names of settings whose new value needs a restart. */
  readonly pending: readonly string[]
}

export function changesOf(running: Settings, read: Settings): Changes {
  const live: Record<string, unknown> = {}
  const taken: string[] = []
  const pending: string[] = []
  for (const [field, { name, isLive, envOnly }] of Object.entries<Setting<unknown>>(table)) {
    // Secrets: those of the first start are used up, and a log line must not tell that one changed.
    if (envOnly) continue
    // Every other setting is a field of the same name.
    const next = read[field as keyof Settings]
    if (isDeepStrictEqual(running[field as keyof Settings], next)) continue
    if (isLive) {
      live[field] = next
      taken.push(name)
    } else pending.push(name)
  }
  return { settings: Object.freeze({ ...running, ...live }), taken, pending }
}
