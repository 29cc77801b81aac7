/** Logins for tests: stored logins with a clock that is set by hand. */

import { CachedLogins, type CachedLoginsOptions } from '../../../data-plane/mirrored/cached-logins.ts'
import { IdSource } from '../../../lib/ids.ts'
import { createLog } from '../../../lib/log/create-log.ts'
import { Sealer } from '../../../lib/secrets/seal.ts'
import type { Login, LoginOrigin, LoginScope, UsedAnswer } from '../../../model/logins.ts'
import { Follower } from '../../store/feed-follower.ts'
import type { Store } from '../../store/store.ts'
import { LoginUpkeep, type LoginUpkeepOptions } from '../login-upkeep.ts'
import { KEY_ID } from '../sealing.ts'
import { StoredLogins, type StoredLoginsOptions } from '../stored-logins.ts'

/** The time at which these tests begin. */
export const START = Date.UTC(2026, 0, 1)

const log = createLog({ level: 'silent' })

/** One node that keeps logins in `store`. */
export async function loginNode(
  store: Store,
  options: Partial<StoredLoginsOptions & CachedLoginsOptions & LoginUpkeepOptions> = {},
): Promise<LoginNode> {
  const clock = { now: START }
  const now = () => clock.now
  const sealer = new Sealer(Buffer.alloc(32, 7))
  await store.write((writer) => writer.keepMeta(KEY_ID, sealer.keyId))
  const stored = new StoredLogins({ store, sealer, ids: new IdSource({ now }), ...options })
  const sessions = new CachedLogins({ rows: stored, isOurs: () => true, now, log, ...options })
  stored.whenEnded((endings) => sessions.ended(endings))
  const follower = new Follower({ store, followed: stored, log })
  await follower.start()
  return {
    sessions,
    stored,
    clock,
    upkeep: new LoginUpkeep({ store, now, log, ...options }),
    close: async () => {
      await follower.stop()
      await sessions.close()
    },
  }
}

export interface LoginNode {
  readonly sessions: CachedLogins
  readonly stored: StoredLogins
  readonly clock: { now: number }
  readonly upkeep: LoginUpkeep
  close(): Promise<void>
}

export function placeOf(changes: Partial<LoginScope> = {}): LoginScope {
  return {
    secret: 'cookie-secret-of-a-browser',
    host: 'app.example.com',
    edgeId: `edghts_${'1'.repeat(27)}`,
    routeId: `edghtsrt_${'1'.repeat(27)}`,
    ...changes,
  }
}

export function loginAt(at: number, { user, ...changes }: Changes = {}): Login {
  return {
    identity: 'digest-of-provider-client-scopes',
    user: { id: 'u-1', name: 'Ada Lovelace', email: 'ada@example.com', username: 'ada', ...user },
    kept: { refresh_token: 'token-of-the-provider' },
    createdAt: at,
    checkedAt: at,
    lastSeenAt: at,
    ...changes,
  }
}

type Changes = Partial<Omit<Login, 'user'>> & { readonly user?: Partial<Login['user']> }

/** What an identity provider sent, to be used once and remembered for an hour. */
export function answerOf(name: string): UsedAnswer {
  return { key: `digest-of-${name}`, untilMs: START + 3_600_000 }
}

export function originOf(changes: Partial<LoginOrigin> = {}): LoginOrigin {
  return {
    provider: 'oidc',
    providerUrl: 'https://id.example.com',
    ip: '192.0.2.7',
    userAgent: 'Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0',
    expiresAt: undefined,
    ...changes,
  }
}
