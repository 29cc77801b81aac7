/** Logins of one server with two data planes, each over a link as between processes. */
import assert from 'node:assert/strict'
import { afterEach, before, beforeEach, describe, test } from 'node:test'
import { eachStore } from '../../../test/support/databases.ts'
import { CachedLogins } from '../../data-plane/mirrored/cached-logins.ts'
import { createLog } from '../../lib/log/create-log.ts'
import { CallLink } from '../../link/calls/call-link.ts'
import { channelPair } from '../../link/calls/plane-channel.ts'
import { linkedLogins, loginCalls } from '../../link/planes/login-calls.ts'
import type { LoginEndings, LoginRows } from '../../link/planes/login-store.ts'
import type { StoredLogins } from '../records/stored-logins.ts'
import {
  answerOf,
  type LoginNode,
  loginAt,
  loginNode,
  originOf,
  placeOf,
  START,
} from '../records/testing/test-logins.ts'
import { openStore, type Store } from '../store/store.ts'

type Heard = { loginsEnded(endings: LoginEndings): void }

const log = createLog({ level: 'silent' })

/** A data plane whose logins are stored behind a link. */
function linkedPlane(stored: StoredLogins, { clock }: LoginNode) {
  const [here, there] = channelPair()
  const control = new CallLink<Heard, LoginRows>(there, loginCalls(stored), { log })
  const unhear = stored.whenEnded((endings) => control.ask('loginsEnded', endings))
  const logins: CachedLogins = new CachedLogins({
    rows: linkedLogins(() => link),
    isOurs: () => true,
    now: () => clock.now,
    log,
  })
  const link = new CallLink<LoginRows, Heard>(here, { loginsEnded: (endings) => logins.ended(endings) }, { log })
  return {
    logins,
    /** The link breaks, and the control plane still tells it of endings. */
    async cut(): Promise<void> {
      link.close()
      await link.closed
    },
    async close(): Promise<void> {
      await logins.close()
      unhear()
      link.close()
    },
  }
}

describe('logins at two data planes of one server', () => {
  eachStore((kind) => {
    let url: string
    let store: Store
    let node: LoginNode
    let one: ReturnType<typeof linkedPlane>
    let two: ReturnType<typeof linkedPlane>
    before(async () => {
      url = await kind.url()
    })
    beforeEach(async () => {
      store = await openStore(url)
      await store.write(async ({ logins }) => {
        while ((await logins.removeUnseen(Number.MAX_SAFE_INTEGER, 1000)).length > 0);
        while ((await logins.removeUnusedUsers(1000)).length > 0);
        await logins.removeAnswers(Number.MAX_SAFE_INTEGER, 1000)
      })
      node = await loginNode(store)
      one = linkedPlane(node.stored, node)
      two = linkedPlane(node.stored, node)
      await one.logins.begin(placeOf(), loginAt(START), originOf())
      for (const { logins } of [two, one]) assert.deepEqual(await logins.find(placeOf()), loginAt(START))
    })
    afterEach(async () => {
      await one.close()
      await two.close()
      await node.close()
      await store.close()
    })

    const session = async () => {
      const [first] = await store.read(({ logins }) => logins.sessions({ limit: 1 }))
      assert.ok(first)
      return first
    }

    test('that end at one are refused at the other at once', async () => {
      await one.logins.end(placeOf())
      for (const { logins } of [two, one]) assert.equal(await logins.find(placeOf()), undefined)
    })

    test('of a user that end at one are refused at the other at once', async () => {
      const owner = { ...originOf(), identity: loginAt(START).identity, userId: loginAt(START).user.id }
      const asked = answerOf('logout request')
      assert.equal(await one.logins.endUser(owner, placeOf().routeId, asked), true)
      for (const { logins } of [two, one]) assert.equal(await logins.find(placeOf()), undefined)
      await one.logins.begin(placeOf(), loginAt(START), originOf())
      assert.equal(await two.logins.endUser(owner, placeOf().routeId, asked), false)
      for (const { logins } of [two, one]) assert.deepEqual(await logins.find(placeOf()), loginAt(START))
    })

    test('begin with an answer that was used at neither plane', async () => {
      assert.equal(await one.logins.useAnswer(answerOf('assertion')), true)
      for (const { logins } of [two, one]) assert.equal(await logins.useAnswer(answerOf('assertion')), false)
      const together = [one, two, one, two].map(({ logins }) => logins.useAnswer(answerOf('race')))
      assert.equal((await Promise.all(together)).filter((isFirst) => isFirst).length, 1)
    })

    test('do not begin while the control plane is away', async () => {
      await two.cut()
      await assert.rejects(two.logins.useAnswer(answerOf('assertion')), /database does not answer/)
    })

    test('that move to a new secret at one are not found by the old one at the other', async () => {
      const again = loginAt(START + 1)
      await one.logins.begin(placeOf({ secret: 'new' }), again, originOf(), placeOf().secret)
      for (const { logins } of [two, one]) {
        assert.equal(await logins.find(placeOf()), undefined)
        assert.deepEqual(await logins.find(placeOf({ secret: 'new' })), again)
      }
    })

    test('that are renewed at one are renewed at the other', async () => {
      const renewed = loginAt(START, { kept: { refresh_token: 'the next' }, checkedAt: START + 5 })
      await one.logins.renew(placeOf(), renewed)
      for (const { logins } of [two, one]) assert.deepEqual(await logins.find(placeOf()), renewed)
    })

    test('are refused at both when the API has ended them', async () => {
      assert.equal(await node.stored.revoke((await session()).id), true)
      for (const { logins } of [two, one]) assert.equal(await logins.find(placeOf()), undefined)
      await one.logins.begin(placeOf(), loginAt(START), originOf())
      for (const { logins } of [two, one]) assert.ok(await logins.find(placeOf()))
      assert.equal(await node.stored.revokeUser((await session()).user_id), true)
      for (const { logins } of [two, one]) assert.equal(await logins.find(placeOf()), undefined)
    })

    test('end even when one data plane is gone', async () => {
      await two.cut()
      assert.equal(await node.stored.revoke((await session()).id), true)
      assert.equal(await one.logins.find(placeOf()), undefined)
      assert.deepEqual(two.logins.find(placeOf()), loginAt(START), 'it has not heard of it')
      two.logins.ended({ isAll: true, ids: [], userIds: [] })
      await assert.rejects(async () => two.logins.find(placeOf()), /database does not answer/)
    })

    test('record visits to either plane, whichever is stored first', async () => {
      const [early, late] = [START + 120_000, START + 180_000]
      node.clock.now = late
      one.logins.seen(placeOf(), late)
      two.logins.seen(placeOf(), early)
      await one.logins.close()
      await two.logins.close()
      assert.equal((await session()).last_seen_at, late)
    })

    test('are refused with the same error as without a link', async () => {
      const huge = loginAt(START, { kept: { token: 'x'.repeat(100_000) } })
      await assert.rejects(one.logins.begin(placeOf(), huge, originOf()), /take over/)
    })
  })
})
