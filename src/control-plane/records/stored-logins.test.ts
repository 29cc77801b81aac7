import assert from 'node:assert/strict'
import { afterEach, before, beforeEach, describe, mock, test } from 'node:test'
import { databaseContents } from '../../../test/support/database-contents.ts'
import { eachStore } from '../../../test/support/databases.ts'
import { until } from '../../../test/support/until.ts'
import { Sealer } from '../../lib/secrets/seal.ts'
import { MAX_IDLE_MS } from '../../link/planes/login-store.ts'
import { LoginWriter } from '../store/login-writer.ts'
import { openStore, type Store, StoreAway } from '../store/store.ts'
import { resealAll } from './reseal-database.ts'
import { MAX_KEPT_BYTES } from './sealed-logins.ts'
import { answerOf, type LoginNode, loginAt, loginNode, originOf, placeOf, START } from './testing/test-logins.ts'

const MINUTE = 60_000

describe('logins', () => {
  eachStore((kind) => {
    let url: string
    let store: Store
    let node: LoginNode
    before(async () => {
      url = await kind.url()
    })
    beforeEach(async () => {
      store = await openStore(url)
      await store.write(async ({ logins }) => {
        while ((await logins.removeUnseen(Number.MAX_SAFE_INTEGER, 1000)).length > 0);
        while ((await logins.removeUnusedUsers(1000)).length > 0);
        await logins.removeAnswers(Number.MAX_SAFE_INTEGER, 10_000)
      })
      node = await loginNode(store)
    })
    afterEach(async () => {
      await node.close()
      await store.close()
    })

    const begin = (place = placeOf(), login = loginAt(START), origin = originOf()) =>
      node.sessions.begin(place, login, origin)
    const all = () => store.read(({ logins }) => logins.sessions({ limit: 100 }))
    const users = () => store.read(({ logins }) => logins.users({ limit: 100 }))
    const first = async () => {
      const [session] = await all()
      assert.ok(session)
      return session
    }

    test('are found where they began, and nowhere else', async () => {
      await begin()
      assert.deepEqual(await node.sessions.find(placeOf()), loginAt(START))
      for (const other of [{ secret: 'another' }, { host: 'www.example.com' }, { routeId: 'edghtsrt_2' }]) {
        assert.equal(await node.sessions.find(placeOf(other)), undefined, JSON.stringify(other))
      }
    })

    test('are found without waiting when they were looked up before', async () => {
      await begin()
      assert.ok(node.sessions.find(placeOf()) instanceof Promise)
      await node.sessions.find(placeOf())
      assert.deepEqual(node.sessions.find(placeOf()), loginAt(START))
    })

    test('move to the new secret of their browser, and are not found by the old one', async () => {
      const other = { routeId: 'edghtsrt_2' }
      await begin()
      await begin(placeOf(other))
      for (const each of [{}, other]) assert.ok(await node.sessions.find(placeOf(each)))
      const again = loginAt(START + MINUTE)
      await node.sessions.begin(placeOf({ secret: 'new' }), again, originOf(), placeOf().secret)
      for (const each of [{}, other]) assert.equal(await node.sessions.find(placeOf(each)), undefined)
      assert.deepEqual(await node.sessions.find(placeOf({ secret: 'new' })), again)
      assert.deepEqual(await node.sessions.find(placeOf({ ...other, secret: 'new' })), loginAt(START))
      assert.equal((await all()).length, 2)
    })

    test('of a user at one route end in all browsers, and no others', async () => {
      const bare = originOf({ provider: 'saml', providerUrl: undefined })
      const places = [placeOf(), placeOf({ secret: 'b' }), placeOf({ routeId: 'edghtsrt_2' }), placeOf({ secret: 'c' })]
      const grace = loginAt(START, { user: { id: 'u-2' } })
      for (const [i, place] of places.entries()) await begin(place, i === 3 ? grace : loginAt(START), bare)
      const elsewhere = loginAt(START, { identity: 'another' })
      await begin(placeOf({ secret: 'd' }), elsewhere, bare)
      for (const place of places) assert.ok(await node.sessions.find(place))
      const owner = { provider: 'saml', identity: loginAt(START).identity, userId: 'u-1' }
      assert.equal(await node.sessions.endUser(owner, placeOf().routeId, answerOf('logout request')), true)
      const found = await Promise.all(places.map(async (place) => node.sessions.find(place)))
      assert.deepEqual(found, [undefined, undefined, loginAt(START), grace])
      assert.deepEqual(await node.sessions.find(placeOf({ secret: 'd' })), elsewhere)
      assert.equal((await all()).length, 3)
    })

    test('of a user end by a request that works once, and is used up only when carried out', async () => {
      const origin = originOf({ provider: 'saml', providerUrl: undefined })
      const owner = { provider: 'saml', identity: loginAt(START).identity, userId: 'u-1' }
      const asked = answerOf('logout request')
      const end = () => node.sessions.endUser(owner, placeOf().routeId, asked)
      await begin(placeOf(), loginAt(START), origin)
      const down = mock.method(LoginWriter.prototype, 'removeOfUser', () => Promise.reject(new StoreAway('silent')))
      await assert.rejects(end(), StoreAway)
      down.mock.restore()
      assert.deepEqual(await node.sessions.find(placeOf()), loginAt(START))
      assert.equal(await end(), true)
      assert.equal(await node.sessions.find(placeOf()), undefined)
      await begin(placeOf(), loginAt(START), origin)
      assert.equal(await end(), false)
      assert.deepEqual(await node.sessions.find(placeOf()), loginAt(START))
    })

    test('survive a restart', async () => {
      await begin()
      assert.equal(await node.sessions.useAnswer(answerOf('assertion')), true)
      await node.close()
      await store.close()
      store = await openStore(url)
      node = await loginNode(store)
      assert.deepEqual(await node.sessions.find(placeOf()), loginAt(START))
      assert.equal(await node.sessions.useAnswer(answerOf('assertion')), false, 'used answers survive too')
    })

    test('begin with an answer once, however many try at the same time', async () => {
      const tries = Array.from({ length: 20 }, () => node.sessions.useAnswer(answerOf('assertion')))
      assert.equal((await Promise.all(tries)).filter((isFirst) => isFirst).length, 1)
      assert.equal(await node.sessions.useAnswer(answerOf('another')), true)
    })

    test('keep used answers until these expire', async () => {
      const count = () => store.read(({ logins }) => logins.count('used_answers'))
      const { untilMs } = answerOf('assertion')
      // More than are removed at a time.
      await store.write(async ({ logins }) => {
        for (let i = 0; i < 2100; i++) await logins.useAnswer({ key: `k${i}`, expires_at: untilMs - 1 })
      })
      await node.sessions.useAnswer(answerOf('assertion'))
      node.clock.now = untilMs - 1
      await node.upkeep.tidy()
      assert.equal(await count(), 1)
      assert.equal(await node.sessions.useAnswer(answerOf('assertion')), false)
      node.clock.now = untilMs
      // Until the upkeep removes it, it is refused all the same.
      assert.equal(await node.sessions.useAnswer(answerOf('assertion')), false)
      await node.upkeep.tidy()
      assert.equal(await count(), 0)
    })

    test('leave neither the secret of the cookie nor what is kept readable in the database', async () => {
      await begin()
      const contents = await databaseContents(url)
      assert.match(contents, /ada@example\.com/)
      assert.doesNotMatch(contents, /cookie-secret-of-a-browser|token-of-the-provider/)
    })

    test('are not opened with values sealed for another login', async () => {
      await begin()
      await begin(placeOf({ secret: 'another' }))
      const [one, two] = await all()
      assert.ok(one && two)
      await store.write(({ logins }) => logins.replaceKept(two.id, one.kept))
      assert.equal(await node.sessions.find(placeOf()), undefined)
      assert.ok(await node.sessions.find(placeOf({ secret: 'another' })))
    })

    test('are sealed again for a new key; one that cannot be opened is removed', async () => {
      const [old, key] = [new Sealer(Buffer.alloc(32, 7)), new Sealer(Buffer.alloc(32, 8))]
      await begin()
      const { id } = await first()
      await begin(placeOf({ secret: 'another' }))
      await store.write(({ logins }) => logins.replaceKept(id, 'broken'))
      await store.write((writer) =>
        resealAll(writer, (sealed, context) => key.seal(old.open(sealed, context), context)),
      )
      const rotated = await loginNode(store, { sealer: key })
      assert.equal(await rotated.sessions.find(placeOf()), undefined)
      assert.deepEqual(await rotated.sessions.find(placeOf({ secret: 'another' })), loginAt(START))
      await rotated.close()
      assert.equal((await all()).length, 1)
    })

    test('are replaced by a new login at the same route', async () => {
      await begin()
      await node.sessions.find(placeOf())
      const { id } = await first()
      const again = loginAt(START + 1, { user: { id: 'u-2' } })
      await begin(placeOf(), again)
      assert.deepEqual(await node.sessions.find(placeOf()), again)
      const ids = (await all()).map((each) => each.id)
      assert.equal(ids.length, 1)
      assert.notEqual(ids[0], id)
    })

    test('end for all routes of a browser on a host, and for nobody else', async () => {
      const route = placeOf({ routeId: 'edghtsrt_2' })
      const other = placeOf({ secret: 'another' })
      for (const place of [placeOf(), route, other]) {
        await begin(place)
        assert.ok(await node.sessions.find(place))
      }
      await node.sessions.end(placeOf())
      assert.equal(await node.sessions.find(placeOf()), undefined)
      assert.equal(await node.sessions.find(route), undefined)
      assert.ok(await node.sessions.find(other))
    })

    test('that end while they are looked up are not found by the next request', async () => {
      await begin()
      const { id, user_id } = await first()
      for (const end of [
        () => node.stored.revoke(id),
        () => node.stored.revokeUser(user_id),
        () => node.sessions.end(placeOf()),
      ]) {
        const early = node.sessions.find(placeOf())
        await end()
        await early
        assert.equal(await node.sessions.find(placeOf()), undefined)
        await begin()
      }
    })

    test('are renewed with the values of the provider', async () => {
      await begin()
      const found = await node.sessions.find(placeOf())
      assert.ok(found)
      const renewed = { ...found, kept: { refresh_token: 'the next' }, checkedAt: START + 5 }
      await node.sessions.renew(placeOf(), renewed)
      assert.deepEqual(await node.sessions.find(placeOf()), renewed)
    })

    test('that ended or were replaced are not renewed', async () => {
      await begin()
      const old = loginAt(START)
      await node.sessions.end(placeOf())
      await node.sessions.renew(placeOf(), old)
      assert.equal(await node.sessions.find(placeOf()), undefined)
      const next = loginAt(START + 1)
      await begin(placeOf(), next)
      await node.sessions.renew(placeOf(), { ...old, checkedAt: START + 9 })
      assert.deepEqual(await node.sessions.find(placeOf()), next)
    })

    test('record when their user was last seen, and store it at most once a minute', async () => {
      await begin()
      await node.sessions.find(placeOf())
      const times = [START + 2 * MINUTE, START + 2 * MINUTE + 1500]
      for (const at of times) {
        node.clock.now = at
        node.sessions.seen(placeOf(), at)
      }
      assert.equal((await node.sessions.find(placeOf()))?.lastSeenAt, times[1])
      await node.close()
      assert.equal((await first()).last_seen_at, times[0])
      assert.equal((await users())[0]?.last_seen_at, times[0])
    })

    test('that are read again keep a time that is not stored yet', async () => {
      await begin()
      const found = await node.sessions.find(placeOf())
      assert.ok(found)
      node.clock.now = START + 2 * MINUTE
      node.sessions.seen(placeOf(), node.clock.now)
      await node.sessions.renew(placeOf(), found)
      assert.equal((await node.sessions.find(placeOf()))?.lastSeenAt, START + 2 * MINUTE)
    })

    test('expire at their end, and after 90 days without a visit', async () => {
      await begin(placeOf(), loginAt(START), originOf({ expiresAt: START + 1000 }))
      await begin(placeOf({ secret: 'another' }))
      node.clock.now = START + 999
      assert.ok(await node.sessions.find(placeOf()))
      node.clock.now = START + 1000
      assert.equal(await node.sessions.find(placeOf()), undefined)
      assert.ok(await node.sessions.find(placeOf({ secret: 'another' })))
      await node.upkeep.tidy()
      assert.equal((await all()).length, 1)
      node.clock.now = START + MAX_IDLE_MS + 1
      assert.equal(await node.sessions.find(placeOf({ secret: 'another' })), undefined)
      await node.upkeep.tidy()
      assert.equal((await all()).length, 0)
      assert.equal((await users()).length, 1, 'the user is kept')
    })

    test('that have expired are removed in the background, round after round', async () => {
      const busy = await loginNode(store, { everyMs: 1 })
      const ended = originOf({ expiresAt: START })
      busy.upkeep.start()
      for (let round = 0; round < 2; round++) {
        await begin(placeOf(), loginAt(START), ended)
        await until('it is removed', async () => (await all()).length === 0)
      }
      await busy.upkeep.stop()
      await busy.close()
    })

    test('of one user are bounded: the one that was idle for longest goes', async () => {
      const small = await loginNode(store, { maxOfUser: 2 })
      const places = ['a', 'b', 'c'].map((secret) => placeOf({ secret }))
      for (const [i, place] of places.entries()) {
        await small.sessions.begin(place, loginAt(START + i), originOf())
        assert.ok(await small.sessions.find(place))
      }
      const other = loginAt(START, { user: { id: 'u-2' } })
      await small.sessions.begin(placeOf({ secret: 'd' }), other, originOf())
      const found = await Promise.all(places.map(async (place) => small.sessions.find(place)))
      assert.deepEqual(
        found.map((each) => each !== undefined),
        [false, true, true],
      )
      assert.ok(await small.sessions.find(placeOf({ secret: 'd' })))
      await small.close()
    })

    test('are shared by edge: the edges with most of them give up those that were idle for longest', async () => {
      const small = await loginNode(store, { maxKept: 60 })
      // The longest absent of all are at the smallest edge.
      const made: string[] = []
      for (const [edgeId, count] of [
        ['edghts_few', 10],
        ['edghts_many', 45],
        ['edghts_most', 65],
      ] as const) {
        for (let i = 0; i < count; i++) {
          const secret = `${edgeId} ${i}`
          const at = START + made.push(secret)
          await small.sessions.begin(placeOf({ secret, edgeId }), loginAt(at, { user: { id: secret } }), originOf())
        }
      }
      await small.upkeep.tidy()
      const left = await store.read(({ logins }) => logins.sessions({ limit: 1000 }))
      const counts = Object.fromEntries(
        [...Map.groupBy(left, (each) => each.edge_id)].map(([id, all]) => [id, all.length]),
      )
      assert.deepEqual(counts, { edghts_few: 10, edghts_many: 25, edghts_most: 25 })
      const kept = new Set(left.map(({ created_at }) => made[created_at - START - 1]))
      assert.deepEqual([kept.has('edghts_most 39'), kept.has('edghts_most 40')], [false, true])
      assert.equal(await store.read(({ logins }) => logins.count('login_users')), 60)
      await small.close()
    })

    test('and users are bounded in all: those that were idle for longest go', async () => {
      const small = await loginNode(store, { maxKept: 250 })
      for (let i = 0; i < 500; i++) {
        const user = { id: `u-${i % 300}` }
        await small.sessions.begin(placeOf({ secret: `s-${i}` }), loginAt(START + i, { user }), originOf())
      }
      assert.ok(await small.sessions.find(placeOf({ secret: 's-0' })))
      await small.upkeep.tidy()
      const counts = await store.read(async ({ logins }) => [
        await logins.count('login_sessions'),
        await logins.count('login_users'),
      ])
      assert.deepEqual(counts, [250, 250])
      await until(
        'the first is refused',
        async () => (await small.sessions.find(placeOf({ secret: 's-0' }))) === undefined,
      )
      assert.ok(await small.sessions.find(placeOf({ secret: 's-499' })))
      await small.close()
    })

    test('that keep too much, or of users with endless ids, are refused', async () => {
      const huge = loginAt(START, { kept: { token: 'x'.repeat(MAX_KEPT_BYTES) } })
      await assert.rejects(begin(placeOf(), huge), /take over/)
      await assert.rejects(begin(placeOf(), loginAt(START, { user: { id: 'x'.repeat(2000) } })), /user id of over/)
      assert.deepEqual([(await all()).length, (await users()).length], [0, 0])
    })

    test('with texts that no database accepts are stored as far as possible', async () => {
      const name = `a\0b\ud800${'é'.repeat(1000)}`
      await begin(placeOf(), loginAt(START, { user: { name } }), originOf({ userAgent: name }))
      const user = (await users())[0]
      assert.ok(user)
      assert.match(user.name, /^ab\ufffdé+…$/)
      assert.ok(Buffer.byteLength(user.name) <= 512)
      assert.equal((await first()).user_agent, user.name)
    })

    test('of one person at two routes belong to one user, and fields that a later login omits stay', async () => {
      await begin()
      const later = loginAt(START + 5, { user: { name: '', email: 'new@example.com' } })
      await begin(placeOf({ routeId: 'edghtsrt_2' }), later)
      const [user, ...others] = await users()
      assert.ok(user)
      assert.equal(others.length, 0)
      assert.deepEqual([user.name, user.email], ['Ada Lovelace', 'new@example.com'])
      assert.deepEqual([user.created_at, user.last_login_at], [START, START + 5])
      // Each login has its own values.
      assert.equal((await node.sessions.find(placeOf()))?.user.email, 'ada@example.com')
    })

    test('of two providers belong to two users, even under one id', async () => {
      await begin()
      await begin(placeOf({ secret: 'b' }), loginAt(START), originOf({ providerUrl: 'https://other.example.com' }))
      await begin(placeOf({ secret: 'c' }), loginAt(START), originOf({ provider: 'google' }))
      const unknown = originOf({ providerUrl: undefined })
      await begin(placeOf({ secret: 'd' }), loginAt(START), unknown)
      await begin(placeOf({ secret: 'e' }), loginAt(START, { identity: 'another' }), unknown)
      assert.equal((await users()).length, 5)
    })

    test('end at once when they are revoked, one or all of a user', async () => {
      const places = ['a', 'b', 'c'].map((secret) => placeOf({ secret }))
      for (const place of places) {
        await begin(place)
        assert.ok(await node.sessions.find(place))
      }
      const { id, user_id: userId } = await first()
      assert.equal(await node.stored.revoke(id), true)
      assert.equal(await node.stored.revoke(id), false)
      assert.equal(await node.sessions.find(placeOf({ secret: 'c' })), undefined)
      assert.ok(await node.sessions.find(placeOf({ secret: 'a' })))
      assert.equal(await node.stored.revokeUser(userId), true)
      assert.equal(await node.stored.revokeUser(userId), false)
      for (const place of places) assert.equal(await node.sessions.find(place), undefined)
    })

    describe('at two nodes', () => {
      let another: LoginNode
      let otherStore: Store
      beforeEach(async () => {
        // On SQLite there is one process, and so one store.
        otherStore = kind.name === 'postgres' ? await openStore(url) : store
        another = await loginNode(otherStore)
        await begin()
        assert.ok(await node.sessions.find(placeOf()))
        assert.ok(await another.sessions.find(placeOf()))
      })
      afterEach(async () => {
        await another.close()
        if (otherStore !== store) await otherStore.close()
      })
      const isGone = async () => (await node.sessions.find(placeOf())) === undefined

      test('a login that is revoked at one is refused at the other', async () => {
        await another.stored.revoke((await first()).id)
        await until('it is refused', isGone)
      })

      test('a user that is revoked at one is refused at the other', async () => {
        await another.stored.revokeUser((await first()).user_id)
        await until('it is refused', isGone)
      })

      test('a browser that logs out at one is logged out at the other', async () => {
        await another.sessions.end(placeOf())
        await until('it is refused', isGone)
      })

      test('an answer that one uses is refused by the other, even at the same moment', async () => {
        assert.equal(await another.sessions.useAnswer(answerOf('assertion')), true)
        assert.equal(await node.sessions.useAnswer(answerOf('assertion')), false)
        for (let round = 0; round < 20; round++) {
          const tries = [node, another, node, another].map(({ sessions }) =>
            sessions.useAnswer(answerOf(`race ${round}`)),
          )
          assert.equal((await Promise.all(tries)).filter((isFirst) => isFirst).length, 1)
        }
      })

      test('a login that one renews is renewed at the other', async () => {
        const renewed = loginAt(START, { kept: { refresh_token: 'the next' }, checkedAt: START + 5 })
        await another.sessions.renew(placeOf(), renewed)
        await until('it has the new token', async () => {
          const found = await node.sessions.find(placeOf())
          return found?.kept.refresh_token === 'the next'
        })
      })

      test('a user who is active at one is not inactive at the other', async () => {
        const at = START + 10 * MINUTE
        another.clock.now = at
        another.sessions.seen(placeOf(), at)
        await another.close()
        node.clock.now = at + 1000
        assert.equal((await node.sessions.find(placeOf()))?.lastSeenAt, at)
      })
    })
  })
})
