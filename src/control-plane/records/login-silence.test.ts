/** Logins while the database is silent. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type Postgres, startPostgres } from '../../../test/support/postgres.ts'
import { openGate, type TcpGate } from '../../../test/support/tcp-gate.ts'
import { until } from '../../../test/support/until.ts'
import { storeLimits } from '../store/limits.ts'
import { openStore, type Store, StoreAway } from '../store/store.ts'
import { answerOf, type LoginNode, loginAt, loginNode, originOf, placeOf, START } from './testing/test-logins.ts'

/** Short, to keep the tests short, but long enough for a busy machine to answer. */
const limits = { ...storeLimits, connectionMs: 1000, statementMs: 1500, pollMs: 200 }

const MINUTE = 60_000

describe('while the database is silent', () => {
  let postgres: Postgres
  let gate: TcpGate
  let store: Store
  let node: LoginNode
  before(async () => {
    postgres = await startPostgres()
    const url = new URL(await postgres.createDatabase())
    gate = await openGate(Number(url.port))
    url.port = String(gate.port)
    store = await openStore(url.href, { limits })
    node = await loginNode(store, { lookupMs: 500 })
    for (const secret of ['known', 'unknown']) {
      await node.sessions.begin(placeOf({ secret }), loginAt(START), originOf())
    }
    assert.ok(await node.sessions.find(known))
    gate.hush()
  })
  after(async () => {
    gate.speak()
    await node.close()
    await store.close()
    await gate.shut()
    await postgres.stop()
  })
  const known = placeOf({ secret: 'known' })
  const unknown = placeOf({ secret: 'unknown' })

  test('visitors whose login is in memory go on, even after a pause', async () => {
    assert.deepEqual(node.sessions.find(known), loginAt(START))
    node.clock.now = START + 5 * MINUTE
    assert.deepEqual(await node.sessions.find(known), loginAt(START))
    assert.deepEqual(node.sessions.find(known), loginAt(START), 'the next request does not wait')
    node.sessions.seen(known, node.clock.now)
  })

  test('others wait no longer than allowed, however many they are, and are not let in', async () => {
    const many = Array.from({ length: 300 }, (_, i) => placeOf({ secret: `nobody-${i}` }))
    const asked = [unknown, unknown, ...many].map(async (place) => node.sessions.find(place))
    const answers = await Promise.allSettled(asked)
    for (const answer of answers) {
      assert.equal(answer.status, 'rejected')
      assert.match(String(answer.reason), /database does not answer/)
    }
  })

  test('a login begins only when it is stored', async () => {
    await assert.rejects(node.sessions.begin(placeOf({ secret: 'new' }), loginAt(START), originOf()), StoreAway)
  })

  test('no answer of a provider is accepted, and no request to end the logins of a user', async () => {
    await assert.rejects(node.sessions.useAnswer(answerOf('assertion')), StoreAway)
    const owner = { ...originOf(), identity: loginAt(START).identity, userId: loginAt(START).user.id }
    await assert.rejects(node.sessions.endUser(owner, known.routeId, answerOf('logout request')), StoreAway)
  })

  test('a logout that cannot be stored fails, but this node forgets the login', async () => {
    await assert.rejects(node.sessions.end(known), StoreAway)
    await assert.rejects(async () => node.sessions.find(known), StoreAway)
  })

  test('everything works again when it answers again', async () => {
    gate.speak()
    const found = await until('the login is found', () =>
      Promise.resolve(node.sessions.find(unknown)).catch((error: unknown) => {
        assert.match(String(error), /database does not answer/)
        return undefined
      }),
    )
    assert.deepEqual(found, loginAt(START))
    assert.equal(await node.sessions.useAnswer(answerOf('assertion')), true)
  })
})
