import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RestartPause } from './restart-pause.ts'

test('there is no pause after the first death, and a longer one after each further death, up to half a minute', () => {
  const pause = new RestartPause()
  const pauses = Array.from({ length: 10 }, () => pause.after(100))
  assert.deepEqual(pauses, [0, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000])
})

test('after a minute of life, earlier deaths are forgotten', () => {
  const pause = new RestartPause()
  for (let i = 0; i < 5; i++) pause.after(59_999)
  assert.equal(pause.after(60_000), 0)
  assert.equal(pause.after(0), 500)
})
