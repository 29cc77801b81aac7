/** Settings as plain data, so that one process can hand them to another. */
import { Secret } from '../../lib/secrets/secret.ts'
import type { DnsKey } from './parse-value.ts'
import { deepFreeze, type Settings } from './read-settings.ts'

/** The same fields with their secrets revealed; to be sent only to a child process of ours. */
export interface CarriedSettings extends Omit<Settings, 'bootstrap' | 'acmeEabKey' | 'acmeDnsKey'> {
  readonly acmeEabKey: string | null
  readonly acmeDnsKey: (Omit<DnsKey, 'secret'> & { readonly secret: string }) | null
  readonly bootstrap: { readonly apiKey: string | null; readonly authtoken: string | null }
}

export function carry(settings: Settings): CarriedSettings {
  const { apiKey, authtoken } = settings.bootstrap
  const { acmeDnsKey } = settings
  return {
    ...settings,
    acmeEabKey: settings.acmeEabKey?.reveal() ?? null,
    acmeDnsKey: acmeDnsKey && { ...acmeDnsKey, secret: acmeDnsKey.secret.reveal() },
    bootstrap: { apiKey: apiKey?.reveal() ?? null, authtoken: authtoken?.reveal() ?? null },
  }
}

/** Leaves out what only the control process may know: how to reach the database, its key, and credentials. */
export function carryToWorker(settings: Settings): CarriedSettings {
  return {
    ...settings,
    databaseUrl: '',
    keyFile: '',
    acmeEabKey: null,
    acmeDnsKey: null,
    bootstrap: { apiKey: null, authtoken: null },
  }
}

export function carriedSettings(carried: CarriedSettings): Settings {
  const { bootstrap, acmeEabKey, acmeDnsKey, ...plain } = carried
  const { apiKey, authtoken } = bootstrap
  return deepFreeze({
    ...plain,
    acmeEabKey: acmeEabKey === null ? null : new Secret(acmeEabKey),
    acmeDnsKey: acmeDnsKey && { ...acmeDnsKey, secret: new Secret(acmeDnsKey.secret) },
    bootstrap: {
      apiKey: apiKey === null ? null : new Secret(apiKey),
      authtoken: authtoken === null ? null : new Secret(authtoken),
    },
  })
}
