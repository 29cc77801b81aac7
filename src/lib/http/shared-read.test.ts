import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SharedRead } from './shared-read.ts'

function counted() {
  const state = { now: 0, reads: 0, isDown: false }
  const shared = new SharedRead(
    async () => {
      state.reads++
      if (state.isDown) throw new Error('down')
      return state.reads
    },
    () => state.now,
  )
  return { state, shared }
}

test('all who wait share one read, and what was read is used while it is fresh', async () => {
  const { state, shared } = counted()
  assert.deepEqual(await Promise.all([shared.value(10), shared.value(10)]), [1, 1])
  state.now = 9
  assert.equal(await shared.value(10), 1)
  state.now = 10
  assert.equal(await shared.value(10), 2)
})

test('between fresh and stale the old value is used, while it is read again in the background', async () => {
  const { state, shared } = counted()
  await shared.value(10, 100)
  state.now = 50
  assert.equal(await shared.value(10, 100), 1)
  assert.equal(await shared.value(10, 100), 2)
  state.isDown = true
  state.now = 100
  const told = Promise.withResolvers<void>()
  assert.equal(await shared.value(10, 100, told.resolve), 2)
  await told.promise
})

test('a failed read is not repeated for two seconds', async () => {
  const { state, shared } = counted()
  state.isDown = true
  await assert.rejects(shared.value(10), /down/)
  state.now = 1999
  await assert.rejects(shared.value(10), /down/)
  assert.equal(state.reads, 1)
  state.now = 2000
  state.isDown = false
  assert.equal(await shared.value(10), 2)
})
