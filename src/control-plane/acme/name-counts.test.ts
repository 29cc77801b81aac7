import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CertificateNameCounts } from './name-counts.ts'

test('names are counted rarely, and the more rarely the longer it takes', async () => {
  let [time, tookMs, renewal] = [0, 1, 0]
  const count = async () => {
    time += tookMs
    return { ordering: 0, first: 0, renewal: ++renewal, failing: 0 }
  }
  const names = new CertificateNameCounts({ count, steady: () => time })
  const seenAfter = async (ms: number) => {
    time += ms
    return (await names.get()).renewal
  }
  assert.equal(await seenAfter(0), 1)
  assert.equal(await seenAfter(4999), 1)
  tookMs = 1000
  assert.equal(await seenAfter(1), 2)
  assert.equal(await seenAfter(99_999), 2)
  assert.deepEqual(await Promise.all([seenAfter(1), seenAfter(0)]), [3, 3], 'those who ask at once share a count')
})

test('a count that failed is not kept', async () => {
  let isAway = true
  const count = async () => {
    if (isAway) throw new Error('away')
    return { ordering: 1, first: 2, renewal: 3, failing: 4 }
  }
  const names = new CertificateNameCounts({ count, steady: () => 0 })
  await assert.rejects(names.get(), /away/)
  isAway = false
  assert.deepEqual(await names.get(), { ordering: 1, first: 2, renewal: 3, failing: 4 })
})
