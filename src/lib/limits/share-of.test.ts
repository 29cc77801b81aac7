import assert from 'node:assert/strict'
import { test } from 'node:test'
import { shareOf } from './share-of.ts'

test('a share is a part of the limit, at least the floor and never more than all of it', () => {
  assert.equal(shareOf(4096, 1), 4096)
  assert.equal(shareOf(4096, 4), 1024)
  assert.equal(shareOf(10, 3), 4)
  assert.equal(shareOf(256, 64, 16), 16)
  assert.equal(shareOf(8, 64, 16), 8)
})

test('no limit stays no limit', () => {
  assert.equal(shareOf(0, 4, 16), 0)
})
