/** What is online in a cluster, as both databases store it. */
import assert from 'node:assert/strict'
import { after, beforeEach, describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { queryDatabase } from '../../../test/support/change-database.ts'
import { eachStore } from '../../../test/support/databases.ts'
import type { OnlineReader } from './online-reader.ts'
import type { OnlineWriter } from './online-writer.ts'
import { openStore, type Store, StoreConflict } from './store.ts'
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

const TABLES = ['nodes', 'online_sessions', 'online_tunnels', 'online_labels', 'places', 'place_holders']

describe('what is online', () => {
  eachStore((kind) => {
    let url: string
    let store: Store
    beforeEach(async () => {
      await store?.close()
      url = await kind.url()
      store = await openStore(url)
    })
    after(() => store.close())

    const read = <T>(query: (online: OnlineReader) => Promise<T>) => store.read(({ online }) => query(online))
    const write = <T>(work: (online: OnlineWriter) => Promise<T>) => store.write(({ online }) => work(online))
    const leave = (id: string) => write((online) => online.leave(id))
    const count = async (table: string) =>
      Number((await queryDatabase(url, `select count(*) as count from ${table}`))[0]?.count)
    const idsOf = (rows: readonly { readonly id: string }[]) => rows.map(({ id }) => id)
    /** Sets a place and its holders, as a claim does. */
    const hold = (place: ReturnType<typeof placeAt>, ...holders: ReturnType<typeof holderAt>[]) =>
      write(async (online) => {
        await online.lockAddresses([place.place])
        await online.setAddresses([place])
        await online.putHolders(holders)
      })

    test('nodes are listed by name while their lease runs', async () => {
      await write(async (online) => {
        assert.equal(await online.renew(nodeAt('n_1', { name: 'b' }), LEASE_MS), false)
        assert.equal(await online.renew(nodeAt('n_3', { name: 'a' }), LEASE_MS), false)
        assert.equal(await online.renew(nodeAt('n_2', { name: 'a' }), LEASE_MS), false)
        assert.equal(await online.renew(nodeAt('n_4'), 0), false)
      })
      const nodes = await read((online) => online.nodes())
      assert.deepEqual(idsOf(nodes), ['n_2', 'n_3', 'n_1'])
      for (const { leaseMs } of nodes) assert.ok(leaseMs > 0 && leaseMs <= LEASE_MS)
      assert.deepEqual(idsOf(await read((online) => online.deadNodes())), ['n_4'])
      const now = nodeAt('n_2', { isLeaving: true, sessions: 7, agentAddresses: [], name: 'z' })
      assert.equal(await write((online) => online.renew(now, LEASE_MS)), true)
      const { leaseMs, ...last } = (await read((online) => online.nodes())).at(-1) ?? assert.fail()
      assert.deepEqual(last, now)
      assert.ok(leaseMs > 0)
    })

    test('a node that has lost its lease has its places, and nothing else, until it is swept', async () => {
      await startNodes(store, 'n_1', 'n_2')
      const mine = holderAt('n_1', 'p_1', 'tn_1')
      await hold(placeAt('p_1'), mine)
      await write((online) => online.putSessions([sessionAt('n_1', 'ts_1')]))
      const found = async () => [
        await write(async (online) => (await online.lockAddresses(['p_1'])).flatMap(({ holders }) => holders)),
        (await read((online) => online.holders(['p_1']))).flatMap(({ holders }) => holders),
        (await read((online) => online.deadNodes())).map(({ id, hasLeft }) => [id, hasLeft]),
        idsOf(await read((online) => online.sessions({ limit: 9 }))),
      ]
      assert.deepEqual(await found(), [[{ ...mine, isAlive: true, isLost: false }], [mine], [], ['ts_1']])
      assert.equal(await read((online) => online.prolong(nodeAt('n_1', { sessions: 3 }), LEASE_MS)), true)
      assert.equal((await read((online) => online.nodes()))[0]?.sessions, 3)
      await write((online) => online.renew(nodeAt('n_1'), 0))
      assert.deepEqual(await found(), [[{ ...mine, isAlive: false, isLost: true }], [mine], [['n_1', false]], []])
      assert.equal(await read((online) => online.prolong(nodeAt('n_1'), LEASE_MS)), false, 'it must be taken anew')
      assert.equal(await read((online) => online.prolong(nodeAt('n_9'), LEASE_MS)), false)
      await leave('n_1')
      assert.deepEqual(await found(), [[{ ...mine, isAlive: false, isLost: false }], [], [['n_1', true]], []])
    })

    test('a lease runs by the clock of the database', async (t) => {
      for (const now of [0, Date.now() + 10 * LEASE_MS]) {
        t.mock.timers.enable({ apis: ['Date'], now })
        await startNodes(store, 'n_1')
        const [node] = await read((online) => online.nodes())
        assert.ok(node && node.leaseMs > 0 && node.leaseMs <= LEASE_MS)
        t.mock.timers.reset()
      }
      await write((online) => online.renew(nodeAt('n_1'), 30))
      while ((await read((online) => online.deadNodes())).length === 0) await delay(10)
      assert.deepEqual(await read((online) => online.nodes()), [])
      assert.equal(await write((online) => online.holdLease('n_1')), false)
      assert.equal(await write((online) => online.renew(nodeAt('n_1'), LEASE_MS)), false)
      assert.equal(await write((online) => online.holdLease('n_1')), true)
      assert.equal(await write((online) => online.renew(nodeAt('n_1'), LEASE_MS)), true)
      await leave('n_1')
      assert.equal(await write((online) => online.holdLease('n_1')), false)
      assert.equal(await write((online) => online.holdLease('n_none')), false)
    })

    test('sessions are stored, taken over, removed only by their node, and gone with its lease', async () => {
      await startNodes(store, 'n_1', 'n_2')
      const ids = Array.from({ length: 1203 }, (_, i) => `ts_${String(i).padStart(5, '0')}`)
      await write((online) => online.putSessions(ids.map((id) => sessionAt('n_1', id))))
      const newest = ids.toReversed()
      assert.deepEqual(idsOf(await read((online) => online.sessions({ limit: 5000 }))), newest)
      const moved = { ...sessionAt('n_2', 'ts_00003'), certificateId: 'sshcrt_1', fields: '{}' }
      // Of two in one call the last counts, as with two calls.
      await write((online) => online.putSessions([sessionAt('n_1', 'ts_00003'), moved]))
      assert.deepEqual(await read((online) => online.session('ts_00003')), moved)
      await write((online) => online.removeSessions('n_1', ['ts_00003', 'ts_00001', 'ts_none']))
      assert.deepEqual(await read((online) => online.session('ts_00003')), moved)
      assert.equal(await read((online) => online.session('ts_00001')), undefined)

      const left = newest.filter((id) => id !== 'ts_00001')
      const page = async (limit: number, beforeId?: string) =>
        idsOf(await read((online) => online.sessions({ limit, ...(beforeId !== undefined && { beforeId }) })))
      assert.deepEqual(await page(3), left.slice(0, 3))
      assert.deepEqual(await page(4, 'ts_00005'), ['ts_00004', 'ts_00003', 'ts_00002', 'ts_00000'])
      assert.deepEqual(await page(4, ''), [])
      await leave('n_1')
      assert.deepEqual(await page(10), ['ts_00003'])
      assert.equal(await read((online) => online.session('ts_00002')), undefined)
      await leave('n_2')
      assert.deepEqual(await page(10), [])
    })

    test('tunnels are found by id, session and endpoint', async () => {
      await startNodes(store, 'n_1', 'n_2')
      const [a, b, c] = [
        tunnelAt('n_1', 'tn_1', { sessionId: 'ts_1', endpointId: 'ep_9' }),
        tunnelAt('n_2', 'tn_2', { sessionId: 'ts_1' }),
        tunnelAt('n_2', 'tn_3', { sessionId: 'ts_2', endpointId: 'ep_1' }),
      ]
      await write((online) => online.putTunnels([c, a, b]))
      const shown = ({ pairs, ...tunnel }: typeof a) => {
        assert.deepEqual(pairs, [])
        return tunnel
      }
      assert.deepEqual(await read((online) => online.tunnels({ limit: 9 })), [c, b, a].map(shown))
      assert.deepEqual(await read((online) => online.tunnels({ limit: 1, beforeId: 'tn_3' })), [shown(b)])
      assert.deepEqual(await read((online) => online.endpoints({ limit: 9 })), [a, c].map(shown))
      assert.deepEqual(await read((online) => online.endpoints({ limit: 9, beforeId: 'ep_9' })), [shown(c)])
      assert.deepEqual(await read((online) => online.tunnel('tn_2')), shown(b))
      assert.deepEqual(await read((online) => online.endpoint('ep_1')), shown(c))
      assert.deepEqual(await read((online) => online.tunnelsOf(['ts_1'])), [a, b].map(shown))
      await leave('n_2')
      assert.deepEqual(await read((online) => online.tunnels({ limit: 9 })), [shown(a)])
      assert.deepEqual(await read((online) => online.endpoints({ limit: 9 })), [shown(a)])
      assert.deepEqual(await read((online) => online.tunnelsOf(['ts_1'])), [shown(a)])
      assert.equal(await read((online) => online.tunnel('tn_2')), undefined)
      assert.equal(await read((online) => online.endpoint('ep_1')), undefined)
    })

    test('a tunnel that comes with the endpoint of another replaces it', async () => {
      await startNodes(store, 'n_1', 'n_2')
      const former = tunnelAt('n_1', 'tn_1', { endpointId: 'ep_1', pairs: ['a=1'] })
      await write((online) => online.putTunnels([former]))
      await write((online) => online.putTunnels([tunnelAt('n_2', 'tn_2', { endpointId: 'ep_1' })]))
      assert.deepEqual(idsOf(await read((online) => online.tunnels({ limit: 9 }))), ['tn_2'])
      assert.equal(await count('online_labels'), 0)
      const twice = ['tn_3', 'tn_4'].map((id) => tunnelAt('n_1', id, { endpointId: 'ep_2' }))
      await assert.rejects(
        write((online) => online.putTunnels(twice)),
        StoreConflict,
      )
    })

    test('tunnels are found by all their labels, oldest first', async () => {
      await startNodes(store, 'n_1', 'n_2')
      const tunnels = Array.from({ length: 1500 }, (_, i) =>
        tunnelAt(i % 2 ? 'n_1' : 'n_2', `tn_${String(i).padStart(5, '0')}`, {
          pairs: ['all=', 'all=', `tens=${i % 10}`, ...(i === 77 ? ['rare=1'] : [])],
        }),
      )
      await write((online) => online.putTunnels(tunnels))
      const found = async (pairs: readonly string[], limit = 9999) =>
        idsOf(await read((online) => online.tunnelsWith(pairs, limit)))
      assert.deepEqual(await found(['all=']), idsOf(tunnels))
      assert.deepEqual(await found(['tens=3', 'all='], 2), ['tn_00003', 'tn_00013'])
      assert.deepEqual(await found(['all=', 'rare=1', 'tens=7']), ['tn_00077'])
      assert.deepEqual(await found(['tens=7', 'tens=7', 'rare=1']), ['tn_00077'])
      assert.deepEqual(await found(['rare=1', 'tens=8']), [])
      assert.deepEqual(await found(['all=', 'none=']), [])
      assert.deepEqual(await found([]), [])

      // Taken over, with other labels.
      await write((online) => online.putTunnels([tunnelAt('n_2', 'tn_00077', { pairs: ['rare=2'] })]))
      assert.deepEqual(await found(['rare=1']), [])
      await write((online) => online.removeTunnels('n_1', ['tn_00077', 'tn_00013']))
      assert.deepEqual(await found(['rare=2']), ['tn_00077'])
      assert.deepEqual(await found(['tens=3'], 2), ['tn_00003', 'tn_00023'])
      await leave('n_1')
      assert.deepEqual(await found(['tens=3']), [])
      assert.equal((await found(['tens=4'])).length, 150)
      await write((online) => online.removeTunnels('n_2', idsOf(tunnels)))
      assert.deepEqual(await found(['rare=2']), [])
    })

    test('a place is held by one tunnel, or by a pool, and found with its live holders', async () => {
      await startNodes(store, 'n_1', 'n_2')
      const alone = placeAt('https:a.example', { config: '{"big":true}' })
      const pool = placeAt('tcp:9001', { isPooled: true, isUnnamed: false, port: 9001, ownerId: 'usr_2' })
      const [a, b, c] = [
        holderAt('n_1', alone.place, 'tn_1'),
        holderAt('n_2', pool.place, 'tn_2', 'tn_2'),
        holderAt('n_1', pool.place, 'tn_3', 'tn_3'),
      ]
      await hold(alone, a)
      await hold(pool, c, b)
      const asked = ['https:none', pool.place, alone.place]
      const holders = async () =>
        (await read((online) => online.holders(asked))).sort((x, y) => (x.place < y.place ? -1 : 1))
      assert.deepEqual(await holders(), [
        { ...alone, holders: [a] },
        { ...pool, holders: [b, c] },
      ])
      assert.deepEqual(await read((online) => online.holders([])), [])
      assert.deepEqual(await read((online) => online.holdersOfPorts([1, 9001])), [{ ...pool, holders: [b, c] }])

      await assert.rejects(
        write((online) => online.putHolders([holderAt('n_2', alone.place, 'tn_4')])),
        (error) => error instanceof StoreConflict && error.trouble === 'taken',
      )
      // The same tunnel, at another node.
      const moved = { ...a, nodeId: 'n_2', planeId: 'p9' }
      await write((online) => online.putHolders([moved]))
      await write((online) => online.removeHolders([a, { ...b, nodeId: 'n_1' }]))
      assert.deepEqual((await holders())[0]?.holders, [moved])
      await leave('n_1')
      assert.deepEqual(await holders(), [
        { ...alone, holders: [moved] },
        { ...pool, holders: [b] },
      ])
      await leave('n_2')
      assert.deepEqual(await holders(), [])
    })

    test('released places are removed, and no others', async () => {
      await startNodes(store, 'n_1')
      const [a, b] = [holderAt('n_1', 'p_1', 'tn_1'), holderAt('n_1', 'p_2', 'tn_2')]
      await hold(placeAt('p_1'), a)
      await hold(placeAt('p_2'), b)
      await write(async (online) => {
        await online.removeHolders([a])
        await online.dropEmptyAddresses(['p_1', 'p_2', 'p_none'])
      })
      assert.deepEqual([await count('places'), await count('place_holders')], [1, 1])
      await write(async (online) => {
        await online.lockAddresses(['p_2'])
        await online.dropHolders([b])
        await online.dropEmptyAddresses(['p_2'])
      })
      assert.deepEqual([await count('places'), await count('place_holders')], [0, 0])
    })

    test('places with a port are read in pages', async () => {
      await startNodes(store, 'n_1', 'n_2')
      const ports = Array.from({ length: 9 }, (_, i) => 9000 - i)
      for (const port of ports) {
        const place = placeAt(`tcp:${port}`, { port })
        await hold(place, holderAt(port % 3 ? 'n_1' : 'n_2', place.place, `tn_${port}`))
      }
      await hold(placeAt('tcp:8995-too', { port: 8995 }), holderAt('n_1', 'tcp:8995-too', 'tn_x'))
      await hold(placeAt('https:a'), holderAt('n_1', 'https:a', 'tn_y'))
      await leave('n_2')
      const seen: string[] = []
      for (let last: { port: number; place: string } | undefined; ; ) {
        const page = await read((online) => online.ports({ limit: 2, after: last }))
        if (page.length === 0) break
        assert.ok(page.length <= 2)
        for (const { place, holders } of page) seen.push(`${place} ${holders.length}`)
        const { port, place } = page.at(-1) ?? assert.fail()
        last = { port: port ?? 0, place }
      }
      const live = [8992, 8993, 8995, '8995-too', 8996, 8998, 8999]
      assert.deepEqual(
        seen,
        live.map((port) => `tcp:${port} 1`),
      )
    })

    test('a claim sees who holds its places, alive or not, and takes those of a lost node', async () => {
      await startNodes(store, 'n_1', 'n_2')
      const [dead, alive] = [holderAt('n_1', 'p_1', 'tn_1'), holderAt('n_2', 'p_2', 'tn_2')]
      await hold(placeAt('p_1'), dead)
      await hold(placeAt('p_2'), alive)
      await leave('n_1')
      const mine = holderAt('n_2', 'p_1', 'tn_3')
      await write(async (online) => {
        assert.equal(await online.holdLease('n_2'), true)
        const locked = await online.lockAddresses(['p_3', 'p_2', 'p_1', 'p_2'])
        assert.deepEqual(
          locked.map(({ place, ownerId, holders }) => [place, ownerId, holders]),
          [
            ['p_1', 'usr_1', [{ ...dead, isAlive: false, isLost: false }]],
            ['p_2', 'usr_1', [{ ...alive, isAlive: true, isLost: false }]],
            ['p_3', '', []],
          ],
        )
        await online.dropHolders([dead])
        await online.setAddresses([placeAt('p_1', { ownerId: 'usr_9', config: '{"new":1}' })])
        await online.putHolders([mine])
        await online.dropEmptyAddresses(['p_3'])
      })
      const now = { ...placeAt('p_1', { ownerId: 'usr_9', config: '{"new":1}' }), holders: [mine] }
      assert.deepEqual(await read((online) => online.holders(['p_1'])), [now])
      assert.equal(await count('places'), 2)
      // Sweeping the rest of the lost node does not remove the place.
      await sweepAll(store, 'n_1', 100)
      assert.deepEqual(await read((online) => online.holders(['p_1'])), [now])
    })

    test('a lost node is swept in pieces, and a live one never', async () => {
      await startNodes(store, 'n_1', 'n_2')
      for (const node of ['n_1', 'n_2']) {
        const of = (name: string) => Array.from({ length: 12 }, (_, i) => `${name}_${node}_${i}`)
        await write(async (online) => {
          await online.putSessions(of('ts').map((id) => sessionAt(node, id)))
          await online.putTunnels(of('tn').map((id) => tunnelAt(node, id, { pairs: ['a=1', 'b=2'] })))
          await online.setAddresses(of('p').map((place) => placeAt(place)))
          await online.putHolders(of('p').map((place, i) => holderAt(node, place, `tn_${node}_${i}`)))
        })
      }
      // One pool with holders of both.
      const pool = placeAt('pool', { isPooled: true })
      const [lost, left] = [holderAt('n_1', 'pool', 'x', 'x'), holderAt('n_2', 'pool', 'y', 'y')]
      await hold(pool, lost, left)
      const sizes = () => Promise.all(TABLES.map(count))
      assert.deepEqual(await sweepAll(store, 'n_1', 10), [])
      assert.deepEqual(await sizes(), [2, 24, 24, 48, 25, 26])
      await leave('n_1')
      // 12 sessions, 12 tunnels with 24 labels, 13 holders, and the node.
      assert.deepEqual(await sweepAll(store, 'n_1', 10), [10, 10, 10, 10, 10, 10, 2])
      assert.deepEqual(await sizes(), [1, 12, 12, 24, 13, 13])
      assert.deepEqual(await read((online) => online.holders(['pool'])), [{ ...pool, holders: [left] }])
      assert.deepEqual(await read((online) => online.deadNodes()), [])
      assert.equal((await read((online) => online.sessions({ limit: 99 }))).length, 12)
      await leave('n_2')
      assert.deepEqual(await sweepAll(store, 'n_2', 9999), [12 + 12 + 24 + 13 + 1])
      assert.deepEqual(await sizes(), [0, 0, 0, 0, 0, 0])
    })

    test('is not part of backups', async () => {
      await startNodes(store, 'n_1')
      await write(async (online) => {
        await online.putSessions([sessionAt('n_1', 'ts_1')])
        await online.putTunnels([tunnelAt('n_1', 'tn_1', { pairs: ['a=1'] })])
      })
      await hold(placeAt('p_1'), holderAt('n_1', 'p_1', 'tn_1'))
      await store.write((writer) => writer.setMeta('kept', 'yes'))
      const intoUrl = await kind.url()
      const into = await openStore(intoUrl)
      assert.equal(await store.snapshot((rows) => into.fill(rows)), 1)
      assert.equal(await into.read((reader) => reader.meta('kept')), 'yes')
      await into.close()
      for (const table of TABLES) {
        assert.equal(await count(table), 1, table)
        assert.deepEqual(await queryDatabase(intoUrl, `select * from ${table}`), [], table)
      }
    })
  })
})
