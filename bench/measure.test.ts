import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type Lane, median, sampleInTurns } from './measure.ts'

describe('lanes', () => {
  const lane = (name: string, log: string[], failAt = Number.POSITIVE_INFINITY): Lane => {
    let runs = 0
    return {
      name,
      pids: () => [],
      run: async (seconds) => {
        if (runs++ === failAt) throw new Error('it broke')
        log.push(`${name}${seconds}`)
        return { amount: 100 * runs, seconds: 2 }
      },
    }
  }

  test('warm up, then take turns, each being first in its turn', async () => {
    const log: string[] = []
    const done = await sampleInTurns([lane('a', log), lane('b', log)], { rounds: 3, seconds: 7, onSample() {} })
    assert.deepEqual(log, ['a2', 'b2', 'a7', 'b7', 'b7', 'a7', 'a7', 'b7'])
    assert.deepEqual(
      done.map(({ samples }) => samples.map((sample) => sample.perSecond)),
      [
        [100, 150, 200],
        [100, 150, 200],
      ],
    )
  })

  test('that fail are given up, and the others continue', async () => {
    const log: string[] = []
    const lanes = [lane('a', log, 2), lane('b', log)]
    const [a, b] = await sampleInTurns(lanes, { rounds: 3, seconds: 1, onSample() {} })
    assert.equal(a?.failure, 'it broke')
    assert.equal(b?.failure, null)
    assert.equal(b?.samples.length, 3)
    assert.deepEqual(
      log.filter((entry) => entry.startsWith('a')),
      ['a1', 'a1'],
    )
  })
})

test('a lane whose process ended meanwhile is given up', async () => {
  const pids = [process.pid, process.ppid]
  const run = async () => ({ amount: 1, seconds: 1, ended: pids.pop() })
  const [only] = await sampleInTurns([{ name: 'a', pids: () => [...pids], run }], {
    rounds: 1,
    seconds: 1,
    onSample() {},
  })
  assert.equal(only?.failure, 'one of its processes ended')
})

describe('the median', () => {
  for (const [values, expected] of [
    [[3, 1, 2], 2],
    [[4, 1, 3, 2], 2.5],
    [[7], 7],
  ] as const) {
    test(`of ${values.join(', ')} is ${expected}`, () => assert.equal(median(values), expected))
  }

  test('of nothing is NaN', () => assert.ok(Number.isNaN(median([]))))
})
