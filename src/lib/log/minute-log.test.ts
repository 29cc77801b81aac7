import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { MinuteLog, type MinuteLogOptions } from './minute-log.ts'

function start(t: TestContext, options?: MinuteLogOptions) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const lines: [string, number][] = []
  return { lines, log: new MinuteLog<string>((fields, count) => lines.push([fields, count]), options) }
}

test('the first event is logged at once, those of the next minute together', (t) => {
  const { lines, log } = start(t)
  for (const name of ['a', 'b', 'c']) log.note(name)
  assert.deepEqual(lines, [['a', 1]])
  t.mock.timers.tick(59_999)
  assert.equal(lines.length, 1)
  t.mock.timers.tick(1)
  assert.deepEqual(lines.at(-1), ['c', 2])
})

test('after a quiet minute the next event is logged at once again', (t) => {
  const { lines, log } = start(t)
  log.note('a')
  t.mock.timers.tick(60_000)
  log.note('b')
  assert.deepEqual(lines, [
    ['a', 1],
    ['b', 1],
  ])
})

test('closing logs the events that were held back', (t) => {
  const { lines, log } = start(t)
  log.note('a')
  log.note('b')
  log.close()
  assert.deepEqual(lines.at(-1), ['b', 1])
  t.mock.timers.tick(120_000)
  assert.equal(lines.length, 2)
})

test('each kind gets its own number of lines a minute', (t) => {
  const { lines, log } = start(t, { lines: 2 })
  for (let i = 0; i < 5; i++) log.note(`a${i}`, 'a')
  log.note('b0', 'b')
  assert.deepEqual(
    lines.map(([name]) => name),
    ['a0', 'a1', 'b0'],
  )
  t.mock.timers.tick(60_000)
  assert.deepEqual(lines.slice(3), [['a4', 3]])
  // The line about the last minute counts as the first line of this one.
  for (const name of ['a5', 'a6']) log.note(name, 'a')
  assert.deepEqual(lines.slice(4), [['a5', 1]])
})

test('kinds beyond the maximum share one count, and an old kind makes room once its minute is over', (t) => {
  const { lines, log } = start(t)
  for (let i = 0; i < 1500; i++) log.note(`x${i}`, `kind ${i}`)
  assert.equal(lines.length, 1001)
  t.mock.timers.tick(60_000)
  assert.deepEqual(lines.slice(1001), [['x1499', 499]])
  log.note('new', 'kind 2000')
  assert.deepEqual(lines.at(-1), ['new', 1])
})
