import assert from 'node:assert/strict'
import { describe, mock, test } from 'node:test'
import { setImmediate as nextRound } from 'node:timers/promises'
import { BeginTurns } from './standby-table.ts'

/** Takes turns for `names`; gives those that have begun, and a function to end each. */
function taking(turns: BeginTurns, names: readonly string[]) {
  const begun: string[] = []
  const ends = new Map<string, () => void>()
  for (const name of names) {
    void turns.take().then((over) => {
      begun.push(name)
      ends.set(name, over)
    })
  }
  return { begun, end: (name: string) => ends.get(name)?.() }
}

describe('turns', () => {
  test('are taken up to the limit, and by the next when one is over', async () => {
    const turns = new BeginTurns({ atOnce: 2, longestMs: 60_000 })
    const { begun, end } = taking(turns, ['a', 'b', 'c', 'd'])
    await nextRound()
    assert.deepEqual([begun, turns.taken], [['a', 'b'], 2])
    end('b')
    await nextRound()
    assert.deepEqual([begun, turns.taken], [['a', 'b', 'c'], 2])
    end('b')
    await nextRound()
    assert.deepEqual(begun, ['a', 'b', 'c'], 'a turn is over once')
    for (const name of ['a', 'c']) end(name)
    await nextRound()
    assert.deepEqual([begun.at(-1), turns.taken], ['d', 1])
    end('d')
    assert.equal(turns.taken, 0)
  })

  test('are over after a while even when the work is not', async (t) => {
    t.after(() => mock.timers.reset())
    mock.timers.enable({ apis: ['setTimeout'] })
    const turns = new BeginTurns({ atOnce: 1, longestMs: 1000 })
    const { begun, end } = taking(turns, ['slow', 'next', 'last'])
    await nextRound()
    mock.timers.tick(999)
    await nextRound()
    assert.deepEqual(begun, ['slow'])
    mock.timers.tick(1)
    await nextRound()
    assert.deepEqual(begun, ['slow', 'next'])
    end('slow')
    await nextRound()
    assert.deepEqual(begun, ['slow', 'next'], 'it ends late, and gives nobody a second turn')
    end('next')
    await nextRound()
    assert.deepEqual([begun, turns.taken], [['slow', 'next', 'last'], 1])
  })
})
