import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { atEndOfTurn } from './end-of-turn.ts'

describe('work deferred to the end of the turn', () => {
  test('runs in order, after the microtasks, once for each call', async () => {
    const done: string[] = []
    atEndOfTurn(() => done.push('one'))
    atEndOfTurn(() => done.push('two'))
    queueMicrotask(() => atEndOfTurn(() => done.push('three')))
    queueMicrotask(() => done.push('microtask'))
    await turn()
    assert.deepEqual(done, ['microtask', 'one', 'two', 'three'])
    await turn()
    atEndOfTurn(() => done.push('four'))
    await turn()
    assert.equal(done.length, 5)
  })

  test('may defer more, which waits for the next turn', async () => {
    const done: string[] = []
    atEndOfTurn(() => {
      atEndOfTurn(() => done.push('later'))
      done.push('first')
    })
    atEndOfTurn(() => done.push('second'))
    await turn()
    assert.deepEqual(done, ['first', 'second'])
    await turn()
    assert.deepEqual(done, ['first', 'second', 'later'])
  })

  test('runs even if a task before it throws', async (t) => {
    // The test runner would count an uncaught error as a failure.
    const listeners = process.listeners('uncaughtException')
    process.removeAllListeners('uncaughtException')
    t.after(() => {
      for (const listener of listeners) process.on('uncaughtException', listener)
    })
    const done: string[] = []
    const thrown = once(process, 'uncaughtException')
    atEndOfTurn(() => {
      throw new Error('this one failed')
    })
    atEndOfTurn(() => done.push('the next'))
    const [error] = await thrown
    assert.match(String(error), /this one failed/)
    await turn()
    assert.deepEqual(done, ['the next'])
  })
})
