import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { MinuteLog } from './minute-log.ts'

function start(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const lines: [string, number][] = []
  return { lines, log: new MinuteLog<string>((fields, count) => lines.push([fields, count])) }
}

test('the first event is told at once, those of the next minute together', (t) => {
  const { lines, log } = start(t)
  for (const name of ['a', 'b', 'c']) log.note(name)
  assert.deepEqual(lines, [['a', 1]])
  t.mock.timers.tick(59_999)
  assert.equal(lines.length, 1)
  t.mock.timers.tick(1)
  assert.deepEqual(lines.at(-1), ['c', 2])
})

test('after a quiet minute the next event is told at once again', (t) => {
  const { lines, log } = start(t)
  log.note('a')
  t.mock.timers.tick(60_000)
  log.note('b')
  assert.deepEqual(lines, [
    ['a', 1],
    ['b', 1],
  ])
})

test('closing tells what was not told yet', (t) => {
  const { lines, log } = start(t)
  log.note('a')
  log.note('b')
  log.close()
  assert.deepEqual(lines.at(-1), ['b', 1])
  t.mock.timers.tick(120_000)
  assert.equal(lines.length, 2)
})
