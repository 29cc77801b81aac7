/** Settings as plain data, so that one process can hand them to another. */
import { Secret } from '../../lib/secrets/secret.ts'
import { deepFreeze, type Settings } from './read-settings.ts'
import type { Setting } from './setting-kinds.ts'
import { table } from './settings-table.ts'

/** The same fields with their secrets revealed; to be sent only to a child process of ours. */
export type CarriedSettings = Revealed<Settings>

type Revealed<T> = T extends Secret ? string : T extends object ? { readonly [K in keyof T]: Revealed<T[K]> } : T

const secretFields = Object.entries<Setting<unknown>>(table).flatMap(([field, { envOnly }]) => (envOnly ? field : []))

export function carry(settings: Settings): CarriedSettings {
  return withSecrets(settings, reveal) as CarriedSettings // which differ in nothing else
}

/** Leaves out what only the control process may know: how to reach the database, its key, and credentials. */
export function carryToWorker(settings: Settings): CarriedSettings {
  const withoutStore = { ...settings, databaseUrl: '', keyFile: '' }
  return withSecrets(withoutStore, () => null) as CarriedSettings // in which every secret may be null
}

export function carriedSettings(carried: CarriedSettings): Settings {
  return deepFreeze(withSecrets(carried, conceal) as Settings) // what `carry` was given
}

function withSecrets(settings: Settings | CarriedSettings, change: (value: unknown) => unknown): object {
  const { apiKey, authtoken } = settings.bootstrap
  const own = Object.entries(settings).filter(([field]) => secretFields.includes(field))
  return {
    ...settings,
    ...Object.fromEntries(own.map(([field, value]) => [field, change(value)])),
    bootstrap: { apiKey: change(apiKey), authtoken: change(authtoken) },
  }
}

/** A secret, or an object with one in `secret`, as plain data. */
function reveal(value: unknown): unknown {
  if (value instanceof Secret) return value.reveal()
  return hasSecret(value) ? { ...value, secret: reveal(value.secret) } : value
}

function conceal(value: unknown): unknown {
  if (typeof value === 'string') return new Secret(value)
  return hasSecret(value) ? { ...value, secret: conceal(value.secret) } : value
}

function hasSecret(value: unknown): value is { readonly secret: unknown } {
  return typeof value === 'object' && value !== null && 'secret' in value
}
