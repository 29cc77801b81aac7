import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isFlagFault, readFlags } from './flags.ts'

const flags = { rounds: [5, 1], 'few-routes': [10, 2] } as const
const read = (...args: string[]) => readFlags(args, flags, { rowNames: ['a', 'b'] })

test('flags have defaults', () => {
  assert.deepEqual(read(), { counts: { rounds: 5, 'few-routes': 10 }, only: null, out: null, nodeOptions: '' })
})

test('given flags are read', () => {
  const given = read('--few-routes', '2', '--only', 'a,b', '--node-options=--cpu-prof')
  assert.deepEqual(given, {
    ...{ counts: { rounds: 5, 'few-routes': 2 }, only: ['a', 'b'] },
    ...{ out: null, nodeOptions: '--cpu-prof' },
  })
  assert.equal(readFlags(['--out', 'x'], flags, { rowNames: [], hasOut: true }).out, 'x')
})

for (const args of [
  ['--few-routes', '1'],
  ['--rounds', 'x'],
  ['--only', 'c'],
  ['--out', 'x'],
  ['--else', '1'],
]) {
  test(`${args.join(' ')} is refused`, () => assert.throws(() => read(...args), isFlagFault))
}
