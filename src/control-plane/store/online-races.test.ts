/** Nodes that write at the same moment, on the database that several can share. */
import assert from 'node:assert/strict'
import { after, beforeEach, describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { queryDatabase } from '../../../test/support/change-database.ts'
import { eachStore } from '../../../test/support/databases.ts'
import type { OnlineWriter } from './online-writer.ts'
import { openStore, type Store } from './store.ts'
import {
  holderAt,
  LEASE_MS,
  nodeAt,
  placeAt,
  sessionAt,
  startNodes,
  sweepAll,
  tunnelAt,
} from './testing/test-online-rows.ts'

describe('nodes that write at once', () => {
  eachStore(
    (kind) => {
      let url: string
      let stores: readonly Store[] = []
      let one: Store
      let two: Store
      const close = () => Promise.all(stores.map((store) => store.close()))
      beforeEach(async () => {
        await close()
        url = await kind.url()
        stores = [one, two] = [await openStore(url), await openStore(url)]
        await startNodes(one, 'n_1', 'n_2')
      })
      after(close)

      /** Waits until a transaction waits for a lock. */
      const blocked = async () => {
        const waiting = `select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
        while ((await queryDatabase(url, waiting)).length === 0) await delay(5)
      }
      /** Takes all of `places` for a tunnel unless a live holder has one of them. */
      const reserve = async (online: OnlineWriter, nodeId: string, tunnelId: string, places: readonly string[]) => {
        assert.ok(await online.holdLease(nodeId))
        const locked = await online.lockAddresses(places)
        const found = locked.flatMap(({ holders }) => holders)
        if (found.some(({ isAlive }) => isAlive)) return false
        await online.dropHolders(found)
        await online.setAddresses(places.map((place) => placeAt(place)))
        await online.putHolders(places.map((place) => holderAt(nodeId, place, tunnelId)))
        return true
      }

      test('one of many claims gets the place, and none is repeated', async () => {
        const places = Array.from({ length: 40 }, (_, i) => `p_${i}`)
        let runs = 0
        const won = await Promise.all(
          Array.from({ length: 12 }, (_, i) =>
            (i % 2 ? one : two).write(({ online }) => {
              runs++
              return reserve(online, `n_${1 + (i % 2)}`, `tn_${i}`, i % 3 ? places : places.toReversed())
            }),
          ),
        )
        assert.equal(won.filter(Boolean).length, 1)
        assert.equal(runs, 12)
        const held = await one.read(({ online }) => online.holders(places))
        assert.deepEqual(new Set(held.flatMap(({ holders }) => holders.map(({ tunnelId }) => tunnelId))).size, 1)
        assert.equal(held.length, places.length)
      })

      test('a place that is being claimed is not removed as empty', async () => {
        await one.write(({ online }) => online.setAddresses([placeAt('p_1')]))
        const dropped = Promise.withResolvers<void>()
        await one.write(async ({ online }) => {
          assert.ok(await reserve(online, 'n_1', 'tn_1', ['p_1']))
          two.write((other) => other.online.dropEmptyAddresses(['p_1'])).then(dropped.resolve, dropped.reject)
          await blocked()
        })
        await dropped.promise
        const [held] = await one.read(({ online }) => online.holders(['p_1']))
        assert.deepEqual(held?.holders, [holderAt('n_1', 'p_1', 'tn_1')])
      })

      test('a node renews its lease while its own transactions hold it', async () => {
        await one.write(async ({ online }) => {
          assert.ok(await online.holdLease('n_1'))
          assert.equal(await two.write((other) => other.online.renew(nodeAt('n_1'), LEASE_MS)), true)
        })
      })

      test('a sweep waits for transactions that hold the lease, and removes what they wrote', async () => {
        const swept = Promise.withResolvers<number>()
        await one.write(async ({ online }) => {
          assert.ok(await online.holdLease('n_1'))
          await two.write((other) => other.online.leave('n_1'))
          two.write((other) => other.online.sweep('n_1', 100)).then(swept.resolve, swept.reject)
          await blocked()
          await online.putSessions([sessionAt('n_1', 'ts_1')])
        })
        assert.equal(await swept.promise, 2)
        assert.deepEqual(await queryDatabase(url, 'select id from online_sessions'), [])
      })

      test('a node that comes back during a sweep learns that its lease had expired, and keeps the rest', async () => {
        const ids = Array.from({ length: 10 }, (_, i) => `ts_${i}`)
        await one.write(({ online }) => online.putSessions(ids.map((id) => sessionAt('n_1', id))))
        await one.write(({ online }) => online.leave('n_1'))
        const renewed = Promise.withResolvers<boolean>()
        await one.write(async ({ online }) => {
          assert.equal(await online.sweep('n_1', 4), 4)
          two.write((other) => other.online.renew(nodeAt('n_1'), LEASE_MS)).then(renewed.resolve, renewed.reject)
          await blocked()
        })
        assert.equal(await renewed.promise, false)
        assert.deepEqual(await sweepAll(one, 'n_1', 4), [])
        assert.equal((await one.read(({ online }) => online.sessions({ limit: 99 }))).length, 6)
      })

      test('an announcement does not take a session back from a node that takes it at that moment', async () => {
        const rowsOf = (node: string, label: string) => ({
          sessions: [sessionAt(node, 'ts_1')],
          tunnels: [tunnelAt(node, 'tn_1', { pairs: [label] })],
        })
        const [former, next] = [rowsOf('n_1', 'at=1'), rowsOf('n_2', 'at=2')]
        await one.write(async ({ online }) => {
          await online.putSessions(former.sessions)
          await online.putTunnels(former.tunnels)
        })
        const kept = Promise.withResolvers<string[]>()
        await one.write(async ({ online }) => {
          await online.putTunnels(next.tunnels)
          await online.putSessions(next.sessions)
          two
            .write(async (other) => {
              await other.online.keepTunnels(former.tunnels)
              return other.online.keepSessions(former.sessions)
            })
            .then(kept.resolve, kept.reject)
          await blocked()
        })
        assert.deepEqual(await kept.promise, [])
        const all = (pair: string) => one.read(({ online }) => online.tunnelsWith([pair], 9))
        assert.deepEqual([(await all('at=1')).length, (await all('at=2'))[0]?.nodeId], [0, 'n_2'])
        assert.equal((await one.read(({ online }) => online.session('ts_1')))?.nodeId, 'n_2')
      })

      test('a sweep skips rows that others are writing, and does not wait', async () => {
        const ids = ['ts_1', 'ts_2']
        await one.write(async ({ online }) => {
          await online.putSessions(ids.map((id) => sessionAt('n_1', id)))
          await reserve(online, 'n_1', 'tn_1', ['p_1'])
        })
        await one.write(({ online }) => online.leave('n_1'))
        await one.write(async ({ online }) => {
          await online.putSessions([sessionAt('n_2', 'ts_1')])
          await online.lockAddresses(['p_1'])
          const sweep = () => two.write((other) => other.online.sweep('n_1', 100))
          assert.deepEqual([await sweep(), await sweep()], [1, 0])
        })
        // The holder and the node remain.
        assert.deepEqual(await sweepAll(two, 'n_1', 100), [2])
        const sessions = await one.read(({ online }) => online.sessions({ limit: 9 }))
        assert.deepEqual(
          sessions.map(({ id, nodeId }) => [id, nodeId]),
          [['ts_1', 'n_2']],
        )
      })

      test('agents of a lost node come back at another during its sweep, and all that came stays', async () => {
        const numbers = Array.from({ length: 600 }, (_, i) => 1000 + i)
        const announce = async (online: OnlineWriter, nodeId: string, some: readonly number[]) => {
          const [sessions, places] = [some.map((i) => sessionAt(nodeId, `ts_tn_${i}`)), some.map((i) => `p_${i}`)]
          assert.ok(await online.holdLease(nodeId))
          const found = (await online.lockAddresses(places)).flatMap(({ holders }) => holders)
          await online.dropHolders(found.filter(({ isAlive }) => !isAlive))
          await online.setAddresses(places.map((place) => placeAt(place)))
          await online.putHolders(some.map((i) => holderAt(nodeId, `p_${i}`, `tn_${i}`)))
          await online.putSessions(sessions)
          const pairs = ['all=', `by=${nodeId}`]
          await online.putTunnels(some.map((i) => tunnelAt(nodeId, `tn_${i}`, { endpointId: `ep_${i}`, pairs })))
        }
        await one.write(({ online }) => announce(online, 'n_1', numbers))
        await one.write(({ online }) => online.leave('n_1'))
        const back = numbers.filter((i) => i % 2)
        let runs = 0
        const comeBack = async () => {
          for (let i = 0; i < back.length; i += 20) {
            await one.write(({ online }) => {
              runs++
              return announce(online, 'n_2', back.slice(i, i + 20).toReversed())
            })
          }
        }
        const sweep = async () => {
          while ((await two.read(({ online }) => online.deadNodes())).length > 0) await sweepAll(two, 'n_1', 70)
        }
        await Promise.all([comeBack(), sweep(), sweep()])
        assert.equal(runs, 15, 'none had to be repeated')
        const tunnels = await one.read(({ online }) => online.tunnelsWith(['by=n_2', 'all='], 9999))
        assert.deepEqual(
          tunnels.map(({ id }) => id),
          back.map((i) => `tn_${i}`),
        )
        const held = await one.read(({ online }) => online.holders(numbers.map((i) => `p_${i}`)))
        assert.equal(held.length, back.length)
        assert.equal((await one.read(({ online }) => online.sessions({ limit: 9999 }))).length, back.length)
        for (const table of ['online_tunnels', 'online_sessions', 'online_labels', 'place_holders', 'nodes']) {
          const left = await queryDatabase(
            url,
            `select 1 from ${table} where ${table === 'nodes' ? 'id' : 'node_id'} = 'n_1'`,
          )
          assert.deepEqual(left, [], table)
        }
        assert.equal((await queryDatabase(url, 'select 1 from places')).length, back.length)
      })
    },
    ['postgres'],
  )
})
