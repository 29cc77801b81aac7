/** Settings as plain data, so that one process can hand them to another. */
import { Secret } from '../lib/secrets/secret.ts'
import { deepFreeze, type Settings } from './read.ts'

/** The same fields with their secrets revealed; to be sent to a child of ours and nowhere else. */
export interface CarriedSettings extends Omit<Settings, 'bootstrap'> {
  readonly bootstrap: { readonly apiKey: string | null; readonly authtoken: string | null }
}

export function carry(settings: Settings): CarriedSettings {
  const { apiKey, authtoken } = settings.bootstrap
  return { ...settings, bootstrap: { apiKey: apiKey?.reveal() ?? null, authtoken: authtoken?.reveal() ?? null } }
}

/** Without what only the control process may know: how to reach the database, its key, and the first credentials. */
export function carryToWorker(settings: Settings): CarriedSettings {
  return { ...settings, databaseUrl: '', keyFile: '', bootstrap: { apiKey: null, authtoken: null } }
}

export function carriedSettings({ bootstrap: { apiKey, authtoken }, ...plain }: CarriedSettings): Settings {
  return deepFreeze({
    ...plain,
    bootstrap: {
      apiKey: apiKey === null ? null : new Secret(apiKey),
      authtoken: authtoken === null ? null : new Secret(authtoken),
    },
  })
}
