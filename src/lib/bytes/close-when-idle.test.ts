import assert from 'node:assert/strict'
import { test } from 'node:test'
import { closeWhenIdle, type Movable } from './close-when-idle.ts'

class TestConnection implements Movable {
  bytesRead = 0
  bytesWritten = 0
  destroyed = false
  /** The bytes it had carried when it was cut. */
  cutAt: readonly [number, number] | undefined

  destroy(): void {
    this.destroyed = true
    this.cutAt = [this.bytesRead, this.bytesWritten]
  }
}

test('an idle connection is cut', async () => {
  const idle = new TestConnection()
  await closeWhenIdle([idle], 60_000)
  assert.equal(idle.destroyed, true)
})

test('a connection that waits for an answer is cut after it', async () => {
  const asking = new TestConnection()
  const done = closeWhenIdle([asking], 60_000)
  asking.bytesRead = 5
  await new Promise((resolve) => setTimeout(resolve, 150))
  assert.equal(asking.destroyed, false)
  asking.bytesWritten = 5
  await done
  assert.deepEqual(asking.cutAt, [5, 5])
})

test('a connection that sent a request before the first check is cut after its answer', async () => {
  const asking = new TestConnection()
  asking.bytesRead = 5
  const done = closeWhenIdle([asking], 60_000)
  await new Promise((resolve) => setTimeout(resolve, 150))
  assert.equal(asking.destroyed, false)
  asking.bytesWritten = 5
  await done
  assert.deepEqual(asking.cutAt, [5, 5])
})

test('a connection that never rests is left to the caller', async () => {
  const busy = new TestConnection()
  const timer = setInterval(() => busy.bytesWritten++, 1)
  await closeWhenIdle([busy], 100)
  clearInterval(timer)
  assert.equal(busy.destroyed, false)
})

test('a connection with a new request right after each answer is cut between the two', async () => {
  const busy = new TestConnection()
  // Each takes longer than one check, and less than a rest.
  const timer = setInterval(() => {
    if (busy.bytesRead > busy.bytesWritten) busy.bytesWritten++
    else busy.bytesRead++
  }, 15)
  await closeWhenIdle([busy], 400)
  clearInterval(timer)
  assert.equal(busy.destroyed, true)
  assert.equal(busy.cutAt?.[0], busy.cutAt?.[1])
})

test('a connection that waits for an answer for ever is left to the caller', async () => {
  const asking = new TestConnection()
  const done = closeWhenIdle([asking], 100)
  asking.bytesRead = 5
  await done
  assert.equal(asking.destroyed, false)
})

test('without open connections there is no wait', async () => {
  const gone = new TestConnection()
  gone.destroyed = true
  await closeWhenIdle([gone], 60_000)
  assert.equal(gone.cutAt, undefined)
})
