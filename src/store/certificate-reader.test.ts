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
