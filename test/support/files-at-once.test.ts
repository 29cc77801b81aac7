/** A slow machine runs fewer files at once; one that only paused for a moment runs the usual number. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { filesAtOnce } from './files-at-once.ts'

const taking = (times: readonly number[]) => {
  const left = [...times]
  return filesAtOnce(() => left.shift() ?? 0)
}

test('a slow machine runs fewer files at once', () => {
  assert.equal(taking([40, 41, 40, 42, 40]), 4)
  assert.equal(taking([40, 900, 40, 900, 40]), 4)
  assert.equal(taking([120, 110, 130, 40, 125]), 3)
})
