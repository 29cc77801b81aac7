import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { test } from 'node:test'
import { Sweep } from './deadlines.ts'

test('a deadline passes once, and not before its time', () => {
  let now = 0
  const sweep = new Sweep({ now: () => now })
  let passed = 0
  const deadline = sweep.add({ expired: () => passed++ })
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

test('one that passes may remove others and add new ones', () => {
  let now = 0
  const sweep = new Sweep({ now: () => now })
  const passed: string[] = []
  const first = sweep.add({
    expired() {
      passed.push('first')
      sweep.remove(second)
      sweep.add({ expired: () => passed.push('third') }).at = 0
      first.at = sweep.after(1)
    },
  })
  const second = sweep.add({ expired: () => passed.push('second') })
  first.at = second.at = 1
  now = 1
  sweep.run()
  assert.deepEqual(passed, ['first', 'third'])
  now = 2
  sweep.run()
  assert.equal(passed.at(2), 'first')
})

test('the timer of a sweep checks on its own', async () => {
  const sweep = new Sweep({ everyMs: 1 })
  const events = new EventEmitter()
  const deadline = sweep.add({ expired: () => events.emit('passed') })
  deadline.at = sweep.after(1)
  // The timer of a sweep keeps no process alive, so the test does.
  const alive = setInterval(() => {}, 1000)
  await once(events, 'passed')
  clearInterval(alive)
  sweep.remove(deadline)
})

test('thousands of owners that come and go each get their own deadline, and nothing is left', () => {
  let now = 0
  const sweep = new Sweep({ now: () => now })
  const passed: number[] = []
  const kept = Array.from({ length: 3000 }, (_, i) => {
    const deadline = sweep.add({ expired: () => passed.push(i) })
    deadline.at = i
    return deadline
  })
  // From the front, the middle and the end, some of them twice.
  for (const [i, deadline] of kept.entries()) if (i % 3 === 0) sweep.remove(deadline)
  for (const [i, deadline] of kept.entries()) if (i % 6 === 0) sweep.remove(deadline)
  now = 1000
  sweep.run()
  sweep.run()
  now = 5000
  sweep.run()
  sweep.run()
  assert.deepEqual(
    passed.toSorted((a, b) => a - b),
    kept.map((_, i) => i).filter((i) => i % 3 !== 0),
  )
})
