import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HOUR_MS, orderRoom } from './order-pace.ts'

/** Orders that were begun the given number of minutes ago. */
const begun = (...minutesAgo: readonly number[]) => ({
  ordersWithin: async (withinMs: number) => minutesAgo.filter((minutes) => minutes * 60_000 < withinMs).length,
})

const minutes = (count: number, from = 1) => Array.from({ length: count }, (_, i) => from + i)

test('a dozen renewals begin at once, then one per minute', async () => {
  assert.deepEqual(await orderRoom(begun(), 60), { urgent: 60, paced: 12 })
  assert.deepEqual(await orderRoom(begun(...Array<number>(11).fill(0)), 60), { urgent: 49, paced: 1 })
  assert.deepEqual(await orderRoom(begun(...Array<number>(12).fill(0)), 60), { urgent: 48, paced: 0 })
  assert.deepEqual(await orderRoom(begun(...Array<number>(12).fill(1)), 60), { urgent: 48, paced: 1 })
  assert.deepEqual(await orderRoom(begun(0, ...Array<number>(12).fill(1)), 60), { urgent: 47, paced: 0 })
})

test('the limit of the operator is never exceeded', async () => {
  assert.deepEqual(await orderRoom(begun(...minutes(59)), 60), { urgent: 1, paced: 1 })
  assert.deepEqual(await orderRoom(begun(...minutes(60, 0)), 60), { urgent: 0, paced: 0 })
  assert.deepEqual(await orderRoom(begun(...minutes(70, 0)), 60), { urgent: 0, paced: 0 })
})

test('limits of any size are spread over the hour', async () => {
  assert.deepEqual(await orderRoom(begun(), 1), { urgent: 1, paced: 1 })
  assert.deepEqual(await orderRoom(begun(59), 1), { urgent: 0, paced: 0 })
  // One every five minutes.
  assert.deepEqual(await orderRoom(begun(4, 20, 20), 12), { urgent: 9, paced: 0 })
  assert.deepEqual(await orderRoom(begun(5, 20, 20), 12), { urgent: 9, paced: 1 })
  // 17 a minute.
  const before = Array<number>(200).fill(HOUR_MS / 120_000)
  assert.deepEqual(await orderRoom(begun(...before), 1000), { urgent: 800, paced: 17 })
  assert.deepEqual(await orderRoom(begun(...before, ...Array<number>(20).fill(0)), 1000), { urgent: 780, paced: 0 })
})
