import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ReloadAcks } from './reload-acks.ts'

const ignore = (): void => {}

/** Whether the promise has settled by now. */
async function isOver(promise: Promise<unknown>): Promise<boolean> {
  let isSettled = false
  void promise.catch(ignore).then(() => {
    isSettled = true
  })
  await new Promise(setImmediate)
  return isSettled
}

test('a round is over when every child has answered', async () => {
  const answers = new ReloadAcks()
  let number = 0
  const over = answers.ask(['c1', 'w1', 'w2'], (round) => {
    number = round
    // Includes a child that answers at once.
    assert.equal(answers.answered('c1', round), false)
  })
  answers.answered('w1', number)
  answers.answered('w1', number)
  answers.answered('w9', number)
  assert.equal(await isOver(over), false)
  answers.answered('w2', number)
  assert.equal(await isOver(over), true)
  assert.deepEqual(await over, [])
})

test('a round without children, or only with children that leave, is over at once', async () => {
  const answers = new ReloadAcks()
  assert.deepEqual(await answers.ask([], ignore), [])
  const over = answers.ask(['w1', 'w2'], ignore)
  answers.left('w1')
  assert.equal(await isOver(over), false)
  answers.left('w2')
  assert.deepEqual(await over, [])
})

test('children that never answer are named, and a later answer is known as late', async () => {
  const answers = new ReloadAcks(1)
  assert.deepEqual(await answers.ask(['w1', 'w2'], (round) => answers.answered('w1', round)), ['w2'])
  assert.equal(answers.answered('w2', 1), true)
})

test('a late answer to a former round does not count for the next; an answer to the next counts for the former', async () => {
  const answers = new ReloadAcks()
  const first = answers.ask(['w1', 'w2'], ignore)
  const second = answers.ask(['w1', 'w2'], ignore)
  assert.equal(answers.answered('w1', 1), false)
  answers.answered('w2', 2)
  assert.deepEqual(await first, [])
  assert.equal(await isOver(second), false)
  answers.answered('w1', 2)
  assert.deepEqual(await second, [])
})

test('a child that cannot use the settings is reported when all have answered', async () => {
  const answers = new ReloadAcks()
  const over = answers.ask(['w1', 'w2'], (round) => answers.answered('w1', round, 'no such name'))
  assert.equal(await isOver(over), false)
  answers.answered('w2', 1)
  await assert.rejects(over, { message: 'w1: no such name' })
})
