import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Groups } from './multi-map.ts'

test('a value is in its group once, in order of addition, and an empty group is gone', () => {
  const groups = new Groups<number>()
  for (const [key, value] of [
    ['a', 2],
    ['a', 1],
    ['a', 2],
    ['b', 3],
  ] as const)
    groups.add(key, value)
  assert.deepEqual([...groups.get('a')], [2, 1])
  assert.deepEqual([...groups.keys()], ['a', 'b'])
  groups.delete('a', 2)
  groups.delete('a', 9)
  groups.delete('none', 1)
  assert.deepEqual([[...groups.get('a')], groups.has('a')], [[1], true])
  groups.delete('a', 1)
  assert.deepEqual([[...groups.get('a')], groups.has('a'), groups.has('b')], [[], false, true])
  groups.clear()
  assert.deepEqual([...groups.entries()], [])
})
