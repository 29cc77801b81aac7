import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { answerOf, loginAt, originOf, placeOf, START } from '../../control-plane/records/testing/test-logins.ts'
import { createLog } from '../../lib/log/create-log.ts'
import type { LoginRows, SeenLogin, StoredLogin } from '../../link/planes/login-store.ts'
import { Refusal } from '../../model/errors.ts'
import { noAnswerFault } from '../../model/link-fault.ts'
import { browserOf } from '../../modules/login/browser-digest.ts'
import { CachedLogins } from './cached-logins.ts'

const MINUTE = 60_000
const log = createLog({ level: 'silent' })
const row: StoredLogin = { id: 'as_1', userId: 'au_1', login: loginAt(START), expiresAt: null }

/** Rows with one login, that of `placeOf()`; each call may be replaced. */
function rowsWith(changes: Partial<LoginRows> = {}): LoginRows {
  return {
    loginAt: async ({ browser }) => (browser === browserOf(placeOf()) ? row : undefined),
    beginLogin: async () => [],
    renewLogin: async () => row.id,
    endBrowser: async () => {},
    endLoginsOf: async () => [],
    useAnswer: async () => true,
    seenLogins: async () => {},
    ...changes,
  }
}

const isUnavailable = (error: unknown) => {
  assert.ok(error instanceof Refusal)
  assert.deepEqual([error.code, error.headers], ['STORE_UNAVAILABLE', { 'retry-after': '1' }])
  return true
}

describe('logins known at a data plane', () => {
  const clock = { now: START }
  /** Calls that a test replaces. */
  const replaced: Partial<LoginRows> = {}
  const madeUp = new Set<string>()
  let asked: number
  let known: CachedLogins
  const open = (answerMs?: number) => {
    const rows = rowsWith()
    const current = <Name extends keyof LoginRows>(name: Name): LoginRows[Name] => replaced[name] ?? rows[name]
    return new CachedLogins({
      rows: {
        loginAt: (at) => {
          asked++
          return current('loginAt')(at)
        },
        beginLogin: (begun) => current('beginLogin')(begun),
        renewLogin: (renewed) => current('renewLogin')(renewed),
        endBrowser: (browser) => current('endBrowser')(browser),
        endLoginsOf: (user) => current('endLoginsOf')(user),
        useAnswer: (answer) => current('useAnswer')(answer),
        seenLogins: (seen) => current('seenLogins')(seen),
      },
      isOurs: ({ secret }) => !madeUp.has(secret),
      now: () => clock.now,
      log,
      ...(answerMs !== undefined && { answerMs }),
    })
  }
  beforeEach(() => {
    for (const name of Object.keys(replaced)) delete replaced[name as keyof LoginRows] // of this type
    clock.now = START
    asked = 0
    known = open()
  })
  afterEach(() => known.close())

  /** The control plane is away. */
  const cut = () => {
    const away = (name: string) => () => Promise.reject(noAnswerFault('closed', name))
    for (const name of Object.keys(rowsWith())) Object.assign(replaced, { [name]: away(name) })
  }

  test('are found while made-up secrets flood the look-ups (A13)', async () => {
    const { promise: answered, resolve: answer } = Promise.withResolvers<void>()
    replaced.loginAt = async (at) => {
      await answered
      return rowsWith().loginAt(at)
    }
    const flood = Array.from({ length: 1000 }, (_, i) => `made-up-${i}`)
    for (const secret of flood) madeUp.add(secret)
    const refused = flood.map((secret) => Promise.resolve(known.find(placeOf({ secret }))).catch(isUnavailable))
    const fresh = Array.from({ length: 100 }, async (_, i) => known.find(placeOf({ secret: `fresh-${i}` })))
    const ours = known.find(placeOf())
    assert.equal(asked, 50 + 100 + 1, 'made-up ones have a quarter of the look-ups')
    answer()
    assert.deepEqual(await ours, row.login)
    assert.deepEqual(new Set(await Promise.all(fresh)), new Set([undefined]))
    await Promise.all(refused)
    // What was made before there were checksums has room again.
    assert.equal(await known.find(placeOf({ secret: 'made-up-1' })), undefined)
  })

  test('are looked up once for all requests that wait', async () => {
    const found = await Promise.all([1, 2, 3].map(async () => known.find(placeOf())))
    assert.deepEqual(found, [row.login, row.login, row.login])
    assert.equal(asked, 1)
    assert.deepEqual(known.find(placeOf()), row.login)
  })

  test('go on while the control plane is away; unknown ones are asked to retry', async () => {
    await known.find(placeOf())
    cut()
    clock.now = START + 5 * MINUTE
    assert.deepEqual(await known.find(placeOf()), row.login)
    assert.deepEqual(known.find(placeOf()), row.login, 'the next request does not wait')
    await assert.rejects(async () => known.find(placeOf({ secret: 'unknown' })), isUnavailable)
    await assert.rejects(known.begin(placeOf({ secret: 'new' }), loginAt(START), originOf()), isUnavailable)
    await assert.rejects(known.renew(placeOf(), row.login), isUnavailable)
    const owner = { provider: 'oidc', identity: row.login.identity, userId: row.login.user.id }
    await assert.rejects(known.endUser(owner, placeOf().routeId, answerOf('logout request')), isUnavailable)
    await assert.rejects(known.useAnswer(answerOf('assertion')), isUnavailable)
    await assert.rejects(known.end(placeOf()), isUnavailable)
    await assert.rejects(async () => known.find(placeOf()), isUnavailable)
  })

  test('are waited for no longer than allowed, and a late answer is not used', async () => {
    const impatient = open(1)
    const late = Promise.withResolvers<StoredLogin | undefined>()
    replaced.loginAt = () => late.promise
    await assert.rejects(async () => impatient.find(placeOf()), isUnavailable)
    late.reject(noAnswerFault('closed', 'loginAt'))
    delete replaced.loginAt
    assert.deepEqual(await impatient.find(placeOf()), row.login)
    await impatient.close()
  })

  test('pass on a refusal of the store', async () => {
    const refusal = new Refusal('CONFLICT')
    replaced.beginLogin = () => Promise.reject(refusal)
    await assert.rejects(known.begin(placeOf(), loginAt(START), originOf()), refusal)
  })

  const one = { isAll: false, ids: [], userIds: [] }
  for (const [what, endings] of Object.entries({
    'by their id': { ...one, ids: [row.id] },
    'by their user': { ...one, userIds: [row.userId] },
    'when anything may have': { ...one, isAll: true },
  })) {
    test(`that ended elsewhere, ${what}, are looked up again`, async () => {
      await known.find(placeOf())
      known.ended({ ...one, ids: ['as_2'], userIds: ['au_2'] })
      assert.deepEqual(known.find(placeOf()), row.login)
      known.ended(endings)
      replaced.loginAt = async () => undefined
      assert.equal(await known.find(placeOf()), undefined)
    })

    test(`that ended elsewhere, ${what}, during the look-up are not kept`, async () => {
      const answer = Promise.withResolvers<StoredLogin | undefined>()
      replaced.loginAt = () => answer.promise
      const early = known.find(placeOf())
      known.ended(endings)
      answer.resolve(row)
      assert.deepEqual(await early, row.login)
      replaced.loginAt = async () => undefined
      assert.equal(await known.find(placeOf()), undefined)
    })
  }

  test('keep visits until they can be stored, and store them at close', async () => {
    await known.find(placeOf())
    cut()
    clock.now = START + 2 * MINUTE
    known.seen(placeOf(), clock.now)
    await known.close()
    const stored: SeenLogin[] = []
    replaced.seenLogins = async (seen) => {
      stored.push(...seen)
    }
    await known.close()
    assert.deepEqual(stored, [{ id: row.id, userId: row.userId, at: clock.now }])
    await known.close()
    assert.equal(stored.length, 1)
  })
})
