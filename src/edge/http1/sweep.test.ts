import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { test } from 'node:test'
import { Sweep } from './sweep.ts'

test('a deadline passes once, and not before its time', () => {
  let now = 0
  const sweep = new Sweep({ now: () => now })
  let passed = 0
  const deadline = sweep.add(() => passed++)
  sweep.run()
  deadline.at = sweep.after(10)
  now = 9
  sweep.run()
  assert.equal(passed, 0)
  now = 10
  sweep.run()
  sweep.run()
  assert.equal(passed, 1)
  deadline.at = sweep.after(5)
  sweep.remove(deadline)
  now = 100
  sweep.run()
  assert.equal(passed, 1)
})

test('one that passes may take others away and bring new ones', () => {
  let now = 0
  const sweep = new Sweep({ now: () => now })
  const passed: string[] = []
  const first = sweep.add(() => {
    passed.push('first')
    sweep.remove(second)
    sweep.add(() => passed.push('third')).at = 0
    first.at = sweep.after(1)
  })
  const second = sweep.add(() => passed.push('second'))
  first.at = second.at = 1
  now = 1
  sweep.run()
  assert.deepEqual(passed, ['first', 'third'])
  now = 2
  sweep.run()
  assert.equal(passed.at(2), 'first')
})

test('it looks by itself', async () => {
  const sweep = new Sweep({ everyMs: 1 })
  const told = new EventEmitter()
  const deadline = sweep.add(() => told.emit('passed'))
  deadline.at = sweep.after(1)
  // The timer of a sweep keeps no process alive, so the test does.
  const alive = setInterval(() => {}, 1000)
  await once(told, 'passed')
  clearInterval(alive)
  sweep.remove(deadline)
})
