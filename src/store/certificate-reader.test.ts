import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { eachStore } from '../../test/support/databases.ts'
import { nameStage } from './certificate-reader.ts'
import { openStore, type Store } from './store.ts'

describe('names whose certificates the server gets by itself', () => {
  eachStore((databases) => {
    let store: Store

    before(async () => {
      store = await openStore(await databases.url())
    })
    after(() => store.close())

    test('begin within a bound by the week, however many ask at once, and are counted once each', async () => {
      const week = 7 * 86_400_000
      const count = (name: string) => store.write(({ certificates }) => certificates.countName(name, 2, week))
      const names = ['a.test', 'b.test', 'c.test', 'd.test', 'e.test']
      const may = await Promise.all(names.map(count))
      assert.equal(may.filter(Boolean).length, 2)
      // What was counted may begin again, and what was not may not.
      assert.deepEqual(await Promise.all(names.map(count)), may)
      assert.equal(await store.read(({ certificates }) => certificates.ordersWithin(week)), 0, 'they are no orders')
      assert.equal(await store.write(({ certificates }) => certificates.beginOrder('order_1', 1, 1)), true)
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
      assert.equal(await store.read(({ certificates }) => certificates.failingCount()), 1)
      assert.deepEqual(await store.read(({ certificates }) => certificates.stageCounts()), [0, 3, 0])
    })
  })
})
