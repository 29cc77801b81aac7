import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MirroredMap } from './mirrored-map.ts'

const named = (name: string, value = 1) => ({ name, value })

test('a change replaces, adds and removes items by name; all of them replace what was there', () => {
  const map = new MirroredMap<{ name: string; value: number }>()
  map.take({ isAll: true, removed: [], set: [named('a'), named('b')] })
  map.take({ isAll: false, removed: ['a', 'b'], set: [named('b', 2), named('c')] })
  assert.deepEqual([...map.values()], [named('b', 2), named('c')])
  map.take({ isAll: true, removed: [], set: [named('d')] })
  assert.deepEqual([map.get('b'), map.get('d')], [undefined, named('d')])
  map.take({ isAll: true, removed: [], set: [] })
  assert.deepEqual([...map.values()], [])
})

test('an item that is sent again unchanged stays the same object', () => {
  const map = new MirroredMap<{ name: string; value: number }>()
  map.take({ isAll: true, removed: [], set: [named('a'), named('b')] })
  const [a, b] = map.values()
  map.take({ isAll: false, removed: ['a'], set: [named('a')] })
  map.take({ isAll: true, removed: [], set: [named('a'), named('b', 2)] })
  assert.equal(map.get('a'), a)
  assert.notEqual(map.get('b'), b)
})
