import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RecentlyEnded } from './recently-ended.ts'

test('what ended after a moment is reported by any of its names, and what ended before it is not', () => {
  const endings = new RecentlyEnded()
  endings.note('a')
  const { moment } = endings
  assert.equal(endings.hasEnded(['a', 'b'], moment), false)
  endings.note('b')
  assert.equal(endings.hasEnded(['a', 'b'], moment), true)
  assert.equal(endings.hasEnded(['a'], moment), false)
  assert.equal(endings.hasEnded(['b'], endings.moment), false)
})

test('everything may end at once', () => {
  const endings = new RecentlyEnded()
  const { moment } = endings
  endings.noteAll()
  assert.equal(endings.hasEnded(['a'], moment), true)
  assert.equal(endings.hasEnded(['a'], endings.moment), false)
})

test('when there are too many, none of them is forgotten', () => {
  const endings = new RecentlyEnded(3)
  const { moment } = endings
  for (const name of ['a', 'b', 'c', 'd', 'e']) endings.note(name)
  for (const name of ['a', 'c', 'e']) assert.equal(endings.hasEnded([name], moment), true, name)
})
