/** Opens a server's listeners as soon as its settings are known, before the rest of its code is loaded. */

import { Descriptors } from '../lib/files/descriptors.ts'
import type { Logger } from '../lib/log/create-log.ts'
import {
  type HandedListeners,
  handedAddresses,
  type Listeners,
  openHanded,
  openListeners,
} from '../server/config/listeners.ts'
import type { Settings } from '../server/config/read-settings.ts'
import type { SettingSources } from '../server/config/settings-sources.ts'
import { type HandedSocket, takeHanded } from '../server/config/systemd-sockets.ts'
import { hasLauncher } from './launcher.ts'

export interface OpenServer {
  /** Including the addresses of sockets that the service manager passed. */
  readonly settings: Settings
  /** Reads the settings again. */
  readonly read: () => Settings
  readonly listeners: Listeners
  readonly descriptors: Descriptors
}

export type ReadSettings = (how?: Pick<SettingSources, 'handed' | 'isServing'>) => Settings

/** Throws `SettingsError` when a socket that was passed cannot be used. */
export async function openServer(read: ReadSettings, { log }: { readonly log: Logger }): Promise<OpenServer> {
  const sockets = ownHanded(log)
  const descriptors = new Descriptors({ log })
  await descriptors.start()
  let opened: HandedListeners | undefined
  try {
    opened = await openHanded(sockets, descriptors)
    const handed = handedAddresses(opened)
    const settings = read({ handed })
    const listeners = await openListeners(settings, opened, descriptors)
    return { settings, read: () => read({ handed, isServing: true }), listeners, descriptors }
  } catch (error) {
    opened?.close()
    await descriptors.stop()
    throw error
  }
}

/** The sockets that a service manager passed to this process. Throws `SettingsError`. */
export function ownHanded(log: Logger): readonly HandedSocket[] {
  const { env, pid, ppid } = process
  const { sockets, otherPid } = takeHanded(env, (each) => each === pid || (hasLauncher() && each === ppid))
  if (otherPid !== undefined)
    log.warn({ otherPid }, 'the sockets in LISTEN_FDS belong to another process and are not used')
  return sockets
}
