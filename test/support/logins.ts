/** Logins of visitors in the database of a platform, stored as by another server on the same database. */
import { join } from 'node:path'
import { StoredLogins } from '../../src/control-plane/records/stored-logins.ts'
import { Follower } from '../../src/control-plane/store/feed-follower.ts'
import { openStore } from '../../src/control-plane/store/store.ts'
import { CachedLogins } from '../../src/data-plane/mirrored/cached-logins.ts'
import { IdSource } from '../../src/lib/ids.ts'
import { createLog } from '../../src/lib/log/create-log.ts'
import { readKeyFile } from '../../src/lib/secrets/seal.ts'
import type { LoginUser } from '../../src/model/logins.ts'
import type { Platform } from './platform.ts'

export interface VisitorLogin {
  readonly secret: string
  readonly user?: Partial<LoginUser>
  /** An edge, or the endpoint of an agent. */
  readonly edgeId?: string
  readonly at?: number
}

export const EDGE_ID = `edghts_${'1'.repeat(27)}`
export const ROUTE_ID = `edghtsrt_${'1'.repeat(27)}`
export const USER_AGENT = 'Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0'

/** Opens the database of `platform`, like a second server. */
export async function openLogins({ databaseUrl, dataDir }: Pick<Platform, 'databaseUrl' | 'dataDir'>) {
  const log = createLog({ level: 'silent' })
  const store = await openStore(databaseUrl)
  const sealer = readKeyFile(join(dataDir, 'secret.key'))
  const stored = new StoredLogins({ store, sealer, ids: new IdSource({ now: Date.now }) })
  const sessions = new CachedLogins({ rows: stored, isOurs: () => true, now: Date.now, log })
  stored.whenEnded((endings) => sessions.ended(endings))
  const follower = new Follower({ store, followed: stored, log })
  await follower.start()
  const placeOf = (secret: string, edgeId = EDGE_ID) => ({
    secret,
    host: 'app.example.com',
    edgeId,
    routeId: ROUTE_ID,
  })
  return {
    async logIn({ secret, user, edgeId, at = Date.now() }: VisitorLogin): Promise<void> {
      const login = {
        identity: 'digest',
        user: { id: 'u-1', name: 'Ada Lovelace', email: 'ada@example.com', username: 'ada', ...user },
        kept: { refresh_token: 'token-of-the-provider' },
        createdAt: at,
        checkedAt: at,
        lastSeenAt: at,
      }
      const origin = {
        provider: 'oidc',
        providerUrl: 'https://id.example.com',
        ip: '192.0.2.7',
        userAgent: USER_AGENT,
        expiresAt: at + 3_600_000,
      }
      await sessions.begin(placeOf(secret, edgeId), login, origin)
    },
    isLoggedIn: async (secret: string): Promise<boolean> => (await sessions.find(placeOf(secret))) !== undefined,
    async close(): Promise<void> {
      await follower.stop()
      await sessions.close()
      await store.close()
    },
  }
}

export type Logins = Awaited<ReturnType<typeof openLogins>>
