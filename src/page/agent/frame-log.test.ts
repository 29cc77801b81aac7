import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addFrames, noFrames } from './frame-log.ts'

test('the latest thousand frames stay, and the others are counted', () => {
  const many = Array.from({ length: 998 }, (_, i) => ({ number: i + 1 }))
  const log = addFrames(addFrames(noFrames, { frames: many }), { missed: 2 })
  assert.deepEqual([log.frames.length, log.missed], [998, 2])
  const full = addFrames(log, { frames: [{ number: 1001 }, { number: 1002 }, { number: 1003 }] })
  assert.deepEqual([full.frames.length, full.missed, full.frames[0]], [1000, 3, { number: 2 }])
})
