import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OnceAMinute } from './once-a-minute.ts'

test('one line of a kind is due each minute, and says how many were kept back', () => {
  let now = 0
  const lines = new OnceAMinute(() => now)
  assert.deepEqual([lines.due('a'), lines.due('a'), lines.due('b'), lines.due('a')], [0, undefined, 0, undefined])
  now += 60_000
  assert.deepEqual([lines.due('a'), lines.due('a'), lines.due('b')], [2, undefined, 0])
})

test('kinds are bounded, and the one told longest ago is forgotten', () => {
  const lines = new OnceAMinute(() => 0)
  for (let i = 0; i <= 1000; i++) assert.equal(lines.due(`kind ${i}`), 0)
  assert.equal(lines.due('kind 1000'), undefined)
  assert.equal(lines.due('kind 0'), 0)
})
