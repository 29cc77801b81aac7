import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { othersTurn, ownTurn } from './others-turn.ts'

test('of many paused pieces of work, one continues in each round of the loop, in order', async () => {
  const gone: number[] = []
  for (let i = 0; i < 20; i++) void ownTurn().then(() => gone.push(i))
  for (let round = 1; round <= 20; round++) {
    await setImmediate()
    assert.deepEqual(
      gone,
      Array.from({ length: round }, (_, i) => i),
    )
  }
})

test('work that pauses while another runs continues in a later round', async () => {
  const gone: string[] = []
  const work = async (name: string): Promise<void> => {
    for (let i = 0; i < 3; i++) {
      await ownTurn()
      gone.push(name)
    }
  }
  const all = Promise.all([work('a'), work('b')])
  let rounds = 0
  for (; gone.length < 6; rounds++) await setImmediate()
  await all
  assert.deepEqual(gone.join(''), 'ababab')
  assert.ok(rounds >= 6, `${rounds} rounds`)
})

test('work that has run for long enough pauses, and other work does not', async () => {
  let now = 0
  const breath = othersTurn(() => now)
  assert.equal(breath(), undefined)
  now = 4
  assert.equal(breath(), undefined)
  now = 5
  const pause = breath()
  assert.ok(pause instanceof Promise)
  await pause
  assert.equal(breath(), undefined, 'its time begins anew')
})
