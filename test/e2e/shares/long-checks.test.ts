/** Documents that take long to check: those of one user, and those of another. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { WorkerLane } from '../../../src/lib/threads/worker-pool.ts'
import { shared } from '../../../src/model/shared.ts'
import { HeldWork } from './held-work.ts'

const { most } = shared.longChecks

test('more documents of one user than may wait refuse none of another, whose turn comes at once', async () => {
  const work = new HeldWork()
  const lane = new WorkerLane((owner) => work.begin(String(owner)), most)
  const run = (owner: string): Promise<string> =>
    lane.run(owner, owner).then(
      () => 'checked',
      () => 'refused',
    )
  const attack = Array.from({ length: 4 * most }, () => run('usr_a'))
  const others = Array.from({ length: most / 4 }, () => run('usr_b'))
  await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual(work.begun, ['usr_a', 'usr_b'])
  while (work.underWay > 0) await work.letGo()
  assert.deepEqual(new Set(await Promise.all(others)), new Set(['checked']))
  assert.ok((await Promise.all(attack)).includes('checked'))
})
