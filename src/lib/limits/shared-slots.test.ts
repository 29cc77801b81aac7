import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SharedSlots } from './shared-slots.ts'

test('one owner has all slots until another wants some; then its oldest give way', () => {
  const slots = new SharedSlots<string>(8)
  for (let i = 0; i < 8; i++) assert.equal(slots.take(`a${i}`, 'a'), undefined)
  assert.deepEqual([slots.isShareTaken('a'), slots.isShareTaken('b')], [true, false])
  assert.equal(slots.take('a8', 'a'), 'a0', 'its own oldest')
  assert.deepEqual(
    ['b0', 'b1', 'b2'].map((each) => slots.take(each, 'b')),
    ['a1', 'a2', 'b0'],
  )
  assert.equal(slots.take('c0', 'c'), 'a3')
  assert.deepEqual(slots.holders, ['a4', 'a5', 'a6', 'a7', 'a8', 'b1', 'b2', 'c0'])
})

test('a slot that was given back is free, and is given back once', () => {
  const slots = new SharedSlots<string>(2)
  slots.take('a', 'x')
  slots.take('b', 'y')
  for (let i = 0; i < 2; i++) slots.leave('a')
  assert.deepEqual([slots.has('a'), slots.has('b'), slots.isEmpty], [false, true, false])
  assert.equal(slots.take('c', 'z'), undefined)
  assert.ok(['b', 'c'].includes(slots.take('d', 'w') ?? ''), 'one of those with most')
})
