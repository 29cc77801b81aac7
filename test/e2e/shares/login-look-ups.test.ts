/** Look-ups of logins: made-up cookies of a stranger, and visitors who have just logged in. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { loginAt, START } from '../../../src/control-plane/records/testing/test-logins.ts'
import { CachedLogins } from '../../../src/data-plane/mirrored/cached-logins.ts'
import { createLog } from '../../../src/lib/log/create-log.ts'
import { Sealer } from '../../../src/lib/secrets/seal.ts'
import type { LoginRows, StoredLogin } from '../../../src/link/planes/login-store.ts'
import { shared } from '../../../src/model/shared.ts'
import { browserOf } from '../../../src/modules/login/browser-digest.ts'
import { sessionSecrets } from '../../../src/modules/login/session-secret.ts'
import { HeldWork } from './held-work.ts'

const { most } = shared.loginLookUps
const host = 'app.example.com'
const scopeOf = (secret: string) => ({ secret, host, edgeId: 'edghts_1', routeId: 'edghtsrt_1' })

test('a flood of made-up cookies keeps out nobody who has logged in', async (t) => {
  const work = new HeldWork()
  const stored = new Map<string, StoredLogin>()
  const rows: Pick<LoginRows, 'loginAt'> = {
    loginAt: async ({ browser }) => {
      await work.begin(browser)
      return stored.get(browser)
    },
  }
  const { make, isOurs } = sessionSecrets(new Sealer(randomBytes(32)))
  const logins = new CachedLogins({
    rows: rows as LoginRows, // Nothing else is called.
    isOurs,
    now: () => START,
    log: createLog({ level: 'silent' }),
  })
  t.after(() => logins.close())
  const madeUp = Array.from({ length: 10 * most }, () => randomBytes(33).toString('base64url').slice(0, 43))
  const flood = madeUp.map((secret) => Promise.resolve(logins.find(scopeOf(secret))).catch(() => 'refused'))

  // Many at once: as many as there is room for beside the stranger's share.
  const visitors = Array.from({ length: (most * 3) / 4 }, () => scopeOf(make(host)))
  for (const [i, scope] of visitors.entries()) {
    stored.set(browserOf(scope), { id: `as_${i}`, userId: `au_${i}`, login: loginAt(START), expiresAt: null })
  }
  const visits = visitors.map(async (scope) => logins.find(scope))
  assert.equal(work.underWay, most)
  await work.letGo()
  for (const login of await Promise.all(visits)) assert.ok(login, 'each is logged in')
  const outcomes = await Promise.all(flood)
  assert.deepEqual(new Set(outcomes), new Set([undefined, 'refused']), 'nobody is let in')
})
