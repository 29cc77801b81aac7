import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { VERSION_CHARACTERS } from './dial.ts'
import type { EdgeConfig } from './edge-config.ts'
import { poolDifference, poolVersion, slotOf } from './pool.ts'

const digest = (text: string): string => Buffer.from(text).toString('hex').padEnd(64, '0').slice(-43)
const config = (given: Partial<EdgeConfig>): EdgeConfig => ({
  ...{ id: 'ep_1', kind: 'https', names: ['a.test'], ports: [], modules: {}, routes: [], ...given },
})
const versionOf = (given: Partial<EdgeConfig>): string => poolVersion(config(given), digest)
const terms = (n: number, given: Partial<EdgeConfig>, ownerId = 'usr_1') => ({
  ...{ tunnelId: `tn_${n}`, version: versionOf(given), pool: { ownerId } },
})

describe('tunnels share an address', () => {
  test('whatever their ids are, and in whatever order their guards are written', () => {
    const one = terms(1, { id: 'ep_1', modules: { policy: { a: 1, b: [{ c: 1, d: 2 }] } } })
    const other = terms(2, { id: 'ep_2', modules: { policy: { b: [{ d: 2, c: 1 }], a: 1 } } })
    assert.equal(poolDifference(one, other), undefined)
    assert.ok(one.version.length <= VERSION_CHARACTERS, one.version)
  })

  const route = (modules: EdgeConfig['modules']): Partial<EdgeConfig> => ({
    routes: [{ id: 'r', matchType: 'path_prefix', match: '/', modules }],
  })
  const others: readonly [Partial<EdgeConfig>, ReturnType<typeof poolDifference>][] = [
    [{ kind: 'tls' }, 'protocol'],
    [{ modules: { backend: { pool: { proxyHeader: 1 } } } }, 'protocol'],
    [{ modules: { policy: { inbound: [] } } }, 'policy'],
    [route({ policy: { inbound: [] } }), 'policy'],
    [{ modules: { ip_restriction: {} } }, 'guards'],
    [route({ basic_auth: { credentials: ['ada'] } }), 'guards'],
  ]
  for (const [given, difference] of others) {
    test(`not with another ${difference}: ${JSON.stringify(given)}`, () => {
      const base = 'routes' in given ? route({}) : {}
      assert.equal(poolDifference(terms(1, given), terms(2, base)), difference)
    })
  }

  test('not with another owner, and not when one of them wants it alone', () => {
    const alone = { tunnelId: 'tn_2', version: versionOf({}) }
    assert.equal(poolDifference(terms(1, {}), terms(2, {}, 'usr_2')), 'owner')
    assert.equal(poolDifference(terms(1, {}), alone), 'is alone')
    assert.equal(poolDifference(alone, terms(1, {})), 'asks alone')
    assert.equal(poolDifference(alone, alone), 'asks alone')
  })
})

test('a slot is an address, or in a pool one tunnel at an address', () => {
  const pool = { ownerId: 'usr_1' }
  assert.equal(slotOf({ place: ':80', tunnelId: 'tn_1' }), ':80')
  assert.notEqual(slotOf({ place: ':80', tunnelId: 'tn_1', pool }), slotOf({ place: ':80', tunnelId: 'tn_2', pool }))
})
