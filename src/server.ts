/** The composition root: builds, starts and stops everything, in the order it is written here. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Listeners, plainListeners } from './config/listeners.ts'
import type { Settings } from './config/read.ts'
import { openAuthority } from './control/authority.ts'
import { bindSecrets } from './control/bound-secrets.ts'
import { Documents } from './control/documents.ts'
import { Follower } from './control/follower.ts'
import { rotateKey } from './control/key-rotation.ts'
import { StoredSessions } from './control/login-sessions.ts'
import { LoginUpkeep } from './control/login-upkeep.ts'
import { RefusedLog } from './control/refused-log.ts'
import { requestKeyOf } from './control/request-key.ts'
import { liftRestrictions } from './control/restrictions.ts'
import { openSealer } from './control/sealing.ts'
import { openSshHostKey } from './control/ssh-host-key.ts'
import {
  createKey,
  createUser,
  deleteUser,
  type FirstStart,
  listUsers,
  makeFirstUser,
  type Role,
  setUserActive,
} from './control/users.ts'
import { openDataPlane } from './data-plane.ts'
import { Descriptors } from './lib/files/descriptors.ts'
import { IdSource } from './lib/ids.ts'
import type { Logger } from './lib/log/log.ts'
import { loadLibraries } from './modules/oidc/libraries.ts'
import { samlThreads } from './modules/saml/document-threads.ts'
import type { RestrictedPart } from './resources/ip-restrictions.ts'
import type { StoreLimits } from './store/limits.ts'
import { lockForServing } from './store/serve-lock.ts'
import { openStore } from './store/store.ts'

export interface RunningServer {
  readonly addresses: Addresses
  /** The fingerprint of the key that the SSH gateway shows of itself. */
  readonly sshHostKey: string
  /** What the very first start made, to be shown once. */
  readonly firstStart: FirstStart | null
  /** Goes over to other settings, as far as they can change while it runs. */
  use(settings: Settings): void
  /** Finishes what is open within the drain time, then closes everything. */
  stop(): Promise<void>
}

/** Where the server listens, as `host:port`. */
export interface Addresses {
  readonly api: string
  readonly metrics: string
  readonly agents: string
  readonly ssh: string
  readonly https: string
  readonly http: string
}

export interface ServerOptions {
  readonly log: Logger
  /** What is open already; otherwise it is opened as the settings say. */
  readonly listeners?: Listeners
  /** Watches over file descriptors already. */
  readonly descriptors?: Descriptors
  /** Shorter ones are for tests. */
  readonly storeLimits?: StoreLimits
}

/**
 * Starts a whole server; resolves once it is ready. Whatever was opened is closed again when something fails.
 *
 * The order is that of who is in a hurry. Agents come first, since some that find nobody wait for minutes before they ask
 * again (D50): nothing is loaded before their door that it can do without. Then visitors, then callers of the API.
 */
export async function startServer(
  settings: Settings,
  { log, storeLimits: limits, listeners = plainListeners(settings), ...given }: ServerOptions,
): Promise<RunningServer> {
  const now = Date.now
  const ids = new IdSource({ now })
  const version = packageVersion()
  const opened: (() => Promise<void>)[] = []
  const closeAll = async () => {
    for (const close of opened.splice(0).reverse()) await close()
  }

  try {
    const descriptors = given.descriptors ?? new Descriptors({ log })
    if (!given.descriptors) await descriptors.start()
    opened.push(() => descriptors.stop())

    // What is kept.
    const release = lockForServing(settings.databaseUrl)
    opened.push(async () => release())
    const store = await openStore(settings.databaseUrl, { ...(limits && { limits }) })
    opened.push(() => store.close())
    const sealer = await openSealer(store, settings.keyFile)
    await bindSecrets(store, sealer)
    const authority = await openAuthority(store, sealer, join(settings.dataDir, 'ca.pem'))
    const requestKey = requestKeyOf(store, sealer, now)
    const hostKey = await openSshHostKey(store, sealer)

    // What people write is checked here, and off the event loop where that takes long.
    const documents = new Documents()
    opened.push(() => documents.close())
    const samlDocuments = samlThreads()
    opened.push(() => samlDocuments.close())

    // Who logged in, and until when.
    const refused = new RefusedLog({ log })
    opened.push(async () => refused.close())
    const sessions = new StoredSessions({ store, sealer, ids, now, log })
    opened.push(() => sessions.close())
    const endings = new Follower({ store, followed: sessions, log })
    await endings.start()
    opened.push(() => endings.stop())
    const upkeep = new LoginUpkeep({ store, now, log })
    upkeep.start()
    opened.push(() => upkeep.stop())

    // The doors of agents and visitors. From here on agents are served, and visitors wait.
    const shared = {
      settings,
      store,
      sealer,
      ids,
      now,
      log,
      refused,
      descriptors,
      documents,
      sessions,
      requestKey,
      version,
    }
    const plane = await openDataPlane({
      ...shared,
      listeners,
      authority,
      sshHostKey: hostKey.privateText,
      samlDocuments,
    })
    opened.push(() => plane.close())

    // Now, since it takes a tenth of a second: later it would hold up everybody when the first visitor logs in.
    await loadLibraries()
    await plane.letVisitorsIn()

    // The management API, loaded only now.
    const { openManagementApi } = await import('./management-api.ts')
    const api = await openManagementApi({ ...shared, listeners, plane, sshHostKey: hostKey.fingerprint })
    opened.push(() => api.close())

    // Last, since what it makes is shown once: a start that fails before, on a taken port say, must not use it up.
    const firstStart = await makeFirstUser({ store, ids, now }, revealed(settings))
    api.isServing = true

    const { addresses } = api
    log.info({ ...addresses, database: store.dialect, region: settings.region, ...handedIn(listeners) }, 'server ready')
    return {
      addresses,
      sshHostKey: hostKey.fingerprint,
      firstStart,
      use: (next) => {
        plane.use(next)
        api.use(next)
      },
      stop: async () => {
        api.isServing = false
        log.info('server stopping')
        await closeAll()
        log.info('server stopped')
      },
    }
  } catch (error) {
    await closeAll()
    throw error
  }
}

/** Users and keys straight in the database, for when no key is at hand. */
export async function openAdmin(settings: Settings) {
  const now = Date.now
  const store = await openStore(settings.databaseUrl)
  const making = { store, ids: new IdSource({ now }), now }
  return {
    createUser: (user: { name: string; role: Role }) => createUser(making, user),
    createKey: (key: { ownerId: string; description: string }) => createKey(making, key),
    listUsers: () => listUsers(making),
    setUserActive: (id: string, active: boolean) => setUserActive(making, id, active),
    deleteUser: (id: string) => deleteUser(making, id),
    liftRestrictions: (parts?: readonly RestrictedPart[]) => liftRestrictions(store, parts),
    rotateKey: () => rotateKey(store, settings.keyFile),
    close: () => store.close(),
  }
}

function revealed({ bootstrap }: Settings): { apiKey: string | null; authtoken: string | null } {
  return { apiKey: bootstrap.apiKey?.reveal() ?? null, authtoken: bootstrap.authtoken?.reveal() ?? null }
}

function handedIn({ handed }: Listeners): { readonly handed_in?: readonly string[] } {
  return handed.length > 0 ? { handed_in: handed } : {}
}

export function packageVersion(): string {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}
