import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { eachStore } from '../../../test/support/databases.ts'
import { nameStage } from './certificate-reader.ts'
import { openStore, type Store } from './store.ts'

describe('names whose certificates the server orders by itself', () => {
  eachStore((databases) => {
    let store: Store

    before(async () => {
      store = await openStore(await databases.url())
    })
    after(() => store.close())

    test('begin within a weekly limit, however many begin at once, and are counted once each', async () => {
      const week = 7 * 86_400_000
      const count = (name: string) => store.write(({ certificates }) => certificates.countName(name, 2, week))
      const names = ['a.test', 'b.test', 'c.test', 'd.test', 'e.test']
      const may = await Promise.all(names.map(count))
      assert.equal(may.filter(Boolean).length, 2)
      // A counted name may begin again, and one that was refused may not.
      assert.deepEqual(await Promise.all(names.map(count)), may)
      assert.equal(
        await store.read(({ certificates }) => certificates.ordersWithin(week)),
        0,
        'names do not count as orders',
      )
      const always = { hasRoom: async () => true, countedMs: 1 }
      assert.equal(await store.write(({ certificates }) => certificates.beginOrder('order_1', always)), true)
      assert.deepEqual(await Promise.all(names.map(count)), may, 'the orders of an hour leave them alone')
    })

    test('are counted as failing while their last try failed, whatever their texts say', async () => {
      const states = {
        'fine.test': {},
        'failed.test': { failures: 2, fault: { code: 'DNS', msg: 'no such name' } },
        'quotes.test': { order: { url: 'https://ca.test/"fault":{', directory: '' } },
      }
      await store.write(async ({ certificates }) => {
        await certificates.manage(Object.keys(states))
        for (const [name, state] of Object.entries(states)) {
          const step = { stage: nameStage.first, dueInMs: 0, orderKey: '' }
          await certificates.keep(name, { ...step, state: JSON.stringify(state) })
        }
      })
      const counts = await store.read(({ certificates }) => certificates.nameCounts())
      assert.deepEqual(counts, { ordering: 0, first: 3, renewal: 0, failing: 1 })
    })

    test('begin one after the other, however many see the same free place', async () => {
      const begun = await Promise.all(
        Array.from({ length: 5 }, (_, i) =>
          store.write(({ certificates }) => {
            const hasRoom = async () => (await certificates.ordersWithin(3_600_000)) < 3
            return certificates.beginOrder(`order_one_of_${i}`, { hasRoom, countedMs: 3_600_000 })
          }),
        ),
      )
      assert.equal(await store.read(({ certificates }) => certificates.ordersWithin(3_600_000)), 3)
      assert.ok(begun.includes(false))
    })

    test('wait for their turn, the most urgent first, and are taken out of turn when they are due', async () => {
      const waits = { 'long.wait.test': 3e6, 'over.wait.test': -1, 'short.wait.test': 1e6 }
      await store.write(async ({ certificates }) => {
        await certificates.manage(Object.keys(waits))
        for (const [name, dueInMs] of Object.entries(waits)) {
          await certificates.keep(name, { stage: nameStage.waiting, dueInMs, orderKey: '', state: '{}' })
        }
      })
      const waiting = (limit = 10) => store.read(({ certificates }) => certificates.waiting(limit))
      const over = { name: 'over.wait.test', isDue: true }
      const long = { name: 'long.wait.test', isDue: false }
      assert.deepEqual(await waiting(), [over, { name: 'short.wait.test', isDue: false }, long])
      assert.deepEqual(await waiting(1), [over])
      assert.deepEqual(await waiting(0), [])
      assert.equal((await store.read(({ certificates }) => certificates.nameCounts())).renewal, 3)
      // Of two nodes that see the same turn, one gets it. If it dies, the name is a renewal that is due.
      const takes = ['one', 'two'].map((holder) =>
        store.write(({ certificates }) => certificates.take('short.wait.test', holder, 60_000)),
      )
      const taken = (await Promise.all(takes)).flatMap((each) => each ?? [])
      assert.deepEqual(taken, [{ name: 'short.wait.test', stage: nameStage.renewal, orderKey: '', state: '{}' }])
      assert.deepEqual(await waiting(), [over, long])
      await store.write(({ certificates }) => certificates.letGoOfAll())
      const due = () => store.read(({ certificates }) => certificates.due(nameStage.renewal, 10))
      assert.deepEqual(await due(), ['short.wait.test'])
      // A renewal was requested: the name is due now.
      await store.write(({ certificates }) => certificates.lookAgain(['long.wait.test']))
      assert.deepEqual(await waiting(), [over])
      assert.deepEqual((await due()).sort(), ['long.wait.test', 'short.wait.test'])
    })
  })
})
