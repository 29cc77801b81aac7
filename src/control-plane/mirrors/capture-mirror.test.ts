import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eachStore } from '../../../test/support/databases.ts'
import { sealedBy, storeRows } from '../records/testing/test-rows.ts'
import { captures } from '../resources/captures.ts'
import { openStore } from '../store/store.ts'
import { CaptureFeed } from './capture-mirror.ts'
import { LiveChallenges } from './challenge-mirror.ts'

const { kind } = captures
const fields = { edge_id: 'edghts_1', bodies: true, max_body_bytes: 10, duration: 60, unmask: false }

eachStore((databases) => {
  test('a data plane is told of running captures, and of an end that it missed', async (t) => {
    const store = await sealedBy(await openStore(await databases.url()))
    t.after(() => store.close())
    const sent: string[][] = []
    const feed = () => new CaptureFeed(store, (running) => sent.push(running.map(({ id }) => id)))
    await storeRows(store, [{ id: 'capt_1', kind, fields }])
    await feed().load()
    await store.write((writer) => writer.remove('capt_1'))
    // From a control plane that has replaced the first.
    await feed().load()
    assert.deepEqual(sent, [['capt_1'], []])
  })

  test('a data plane is told when there are no challenges', async (t) => {
    const store = await sealedBy(await openStore(await databases.url()))
    t.after(() => store.close())
    const sent: unknown[] = []
    await new LiveChallenges(store, async (change) => sent.push(change)).load()
    assert.deepEqual(sent, [{ isAll: true, set: [], removed: [] }])
  })
})
