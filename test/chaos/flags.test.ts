import assert from 'node:assert/strict'
import { test } from 'node:test'
import { faultLine, isFlagFault } from '../../bench/flags.ts'
import { readChaosFlags } from './flags.ts'

const line = (...args: string[]): string => {
  try {
    readChaosFlags(args)
    return ''
  } catch (error) {
    assert.ok(isFlagFault(error))
    return faultLine(error)
  }
}

test('a run is read with its options', () => {
  const given = readChaosFlags(['nodes', '--minutes', '3', '--seed=7', '--logs', 'kept'])
  assert.deepEqual(given, { name: 'nodes', store: 'sqlite', logs: 'kept', counts: { minutes: 3, seed: 7 } })
  assert.equal(readChaosFlags(['neighbours', '--cpus'])?.isPinned, true)
})

test('--help is never a fault, whatever else is given', () => {
  for (const args of [['--help'], ['-h'], ['kill', '--help'], ['nonsense', '--help']]) {
    assert.equal(readChaosFlags(args), undefined)
  }
})

test('each fault is reported in one line', () => {
  assert.equal(line(), 'name a run: upgrade, kill, nodes, rolling, stops, still, hostile, neighbours')
  assert.equal(
    line('upgraed'),
    'unknown run upgraed; name one of upgrade, kill, nodes, rolling, stops, still, hostile, neighbours',
  )
  assert.equal(line('kill', 'nodes'), 'one run at a time; remove nodes')
  assert.equal(line('kill', '--nonsense'), "Unknown option '--nonsense'")
  assert.equal(line('kill', '--rounds', 'many'), '--rounds must be a whole number, 1 or more')
  assert.equal(line('kill', '--store', 'mysql'), '--store must be sqlite or postgres')
})
