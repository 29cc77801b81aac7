import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { TurnShare } from './turn-share.ts'

test('a turn has room for 32 requests, and the next turn for as many', async () => {
  const share = new TurnShare({ now: () => 0 })
  for (let turn = 0; turn < 3; turn++) {
    let begun = 0
    for (; !share.isSpent; begun++) share.note()
    assert.equal(begun, 32)
    await setImmediate()
  }
})

test('requests that take long end the share sooner, and one is always begun', async () => {
  let nowMs = 100
  const share = new TurnShare({ now: () => nowMs })
  share.note()
  nowMs += 4.9
  assert.equal(share.isSpent, false)
  share.note()
  nowMs += 0.1
  assert.equal(share.isSpent, true)
  await setImmediate()
  assert.equal(share.isSpent, false)
})
