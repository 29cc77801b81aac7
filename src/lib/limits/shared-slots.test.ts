import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SharedSlots } from './shared-slots.ts'

test('one owner has all places until another wants some; then its oldest give way', () => {
  const places = new SharedSlots<string>(8)
  for (let i = 0; i < 8; i++) assert.equal(places.take(`a${i}`, 'a'), undefined)
  assert.equal(places.take('a8', 'a'), 'a0', 'its own oldest')
  assert.deepEqual(
    ['b0', 'b1', 'b2'].map((each) => places.take(each, 'b')),
    ['a1', 'a2', 'b0'],
  )
  assert.equal(places.take('c0', 'c'), 'a3')
  assert.deepEqual(places.holders, ['a4', 'a5', 'a6', 'a7', 'a8', 'b1', 'b2', 'c0'])
})

test('a place that was given back is free, and is given back once', () => {
  const places = new SharedSlots<string>(2)
  places.take('a', 'x')
  places.take('b', 'y')
  for (let i = 0; i < 2; i++) places.leave('a')
  assert.equal(places.has('a'), false)
  assert.equal(places.take('c', 'z'), undefined)
  assert.ok(['b', 'c'].includes(places.take('d', 'w') ?? ''), 'one of those with most')
})
