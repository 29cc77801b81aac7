import assert from 'node:assert/strict'
import { describe, mock, test } from 'node:test'
import { setImmediate as nextRound } from 'node:timers/promises'
import { SharedTurns } from './shared-turns.ts'

/** Takes turns, and notes those that have come and those that were given up. */
class Takers {
  readonly turns: SharedTurns
  readonly come: string[] = []
  readonly refused: string[] = []

  constructor({ atOnce = 8, waiting = 100, waitMs = 60_000, each = Number.POSITIVE_INFINITY, always = 0 } = {}) {
    this.turns = new SharedTurns({ atOnce, waiting, waitMs, each, always })
  }

  async take(owner: string, count: number, source?: string): Promise<void> {
    const name = source === undefined ? owner : `${owner} from ${source}`
    for (let i = 0; i < count; i++) {
      const turn = this.turns.take(owner, source)
      if (turn === true) this.come.push(name)
      else void turn.then((hasTurn) => (hasTurn ? this.come : this.refused).push(name))
    }
    await nextRound()
  }

  async over(owner: string, count = 1): Promise<void> {
    for (let i = 0; i < count; i++) this.turns.over(owner)
    await nextRound()
  }

  counts(of: readonly string[]): Record<string, number> {
    return Object.fromEntries([...Map.groupBy(of, (owner) => owner)].map(([owner, all]) => [owner, all.length]))
  }
}

describe('shared turns', () => {
  test('are all for one owner while nobody else wants any', async () => {
    const takers = new Takers()
    await takers.take('a', 20)
    assert.deepEqual(takers.counts(takers.come), { a: 8 })
    await takers.over('a', 8)
    assert.deepEqual(takers.counts(takers.come), { a: 16 })
  })

  test('go to those that have less than a quarter first', async () => {
    const takers = new Takers()
    await takers.take('a', 50)
    await takers.take('b', 3)
    await takers.take('c', 1)
    takers.come.length = 0
    await takers.over('a', 4)
    assert.deepEqual(takers.come.toSorted(), ['b', 'b', 'c', 'a'].toSorted())
    await takers.over('a', 2)
    // `b` has its quarter, as `a` has, and they take turns.
    assert.deepEqual(takers.counts(takers.come), { a: 2, b: 3, c: 1 })
  })

  test('are waited for by a bounded number, of whom the largest owner gives up', async () => {
    const takers = new Takers({ waiting: 10 })
    await takers.take('a', 8 + 10)
    assert.deepEqual(takers.refused, [])
    await takers.take('b', 2)
    assert.deepEqual(takers.refused, ['a', 'a'])
    await takers.take('a', 1)
    assert.deepEqual(takers.refused, ['a', 'a', 'a'])
    takers.come.length = 0
    await takers.over('a', 2)
    assert.deepEqual(takers.come, ['b', 'b'])
  })

  test('may be bounded for each owner, who waits for its own while others begin at once', async () => {
    const takers = new Takers({ each: 1 })
    await takers.take('a', 3)
    await takers.take('b', 2)
    assert.deepEqual(takers.come, ['a', 'b'])
    await takers.over('b')
    assert.deepEqual(takers.come, ['a', 'b', 'b'])
    await takers.over('b')
    assert.deepEqual(takers.come, ['a', 'b', 'b'])
    await takers.over('a', 2)
    assert.deepEqual(takers.counts(takers.come), { a: 3, b: 2 })
  })

  test('may come at once for those that have few, although others have all there are', async () => {
    const takers = new Takers({ always: 2 })
    await takers.take('a', 20)
    await takers.take('b', 4)
    await takers.take('c', 1)
    assert.deepEqual(takers.counts(takers.come), { a: 8, b: 2, c: 1 })
    // None but its own turn has to end for that.
    await takers.over('b')
    await takers.over('c')
    assert.deepEqual(takers.counts(takers.come), { a: 8, b: 3, c: 1 })
    // Two turns were beyond what there is room for.
    await takers.over('a', 2)
    assert.deepEqual(takers.counts(takers.come), { a: 8, b: 3, c: 1 })
    await takers.over('a')
    assert.deepEqual(takers.counts(takers.come), { a: 9, b: 3, c: 1 })
    await takers.over('b')
    assert.deepEqual(takers.counts(takers.come), { a: 9, b: 4, c: 1 })
  })

  test('of one owner go to its sources in turn, of which the largest gives up first', async () => {
    const takers = new Takers({ atOnce: 1, waiting: 6 })
    await takers.take('a', 1)
    for (const [source, count] of [
      ['x', 4],
      ['y', 2],
    ] as const)
      await takers.take('a', count, source)
    await takers.take('a', 1, 'z')
    assert.deepEqual(takers.refused, ['a from x'])
    takers.come.length = 0
    await takers.over('a', 6)
    assert.deepEqual(
      takers.come,
      ['y', 'x', 'z', 'y', 'x', 'x'].map((source) => `a from ${source}`),
    )
  })

  test('that do not come in time are given up', async (t) => {
    t.after(() => mock.timers.reset())
    mock.timers.enable({ apis: ['setTimeout'] })
    const takers = new Takers({ atOnce: 1, waitMs: 1000 })
    await takers.take('a', 2)
    mock.timers.tick(1000)
    await nextRound()
    assert.deepEqual(takers.refused, ['a'])
    await takers.over('a')
    await takers.take('b', 1)
    assert.deepEqual(takers.come, ['a', 'b'])
  })
})
