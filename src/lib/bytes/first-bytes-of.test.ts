import assert from 'node:assert/strict'
import { test } from 'node:test'
import { firstBytesOf } from './first-bytes-of.ts'

test('views of any length share the memory, and short ones are made once', () => {
  const memory = Buffer.alloc(10_000)
  const first = firstBytesOf(memory)
  for (const length of [0, 1, 4096, 4097, 10_000]) {
    const view = first(length)
    assert.deepEqual([view.length, view.buffer === memory.buffer, view.byteOffset], [length, true, memory.byteOffset])
    assert.equal(first(length) === view, length <= 4096, String(length))
  }
  const before = first(3)
  memory.write('abc')
  assert.equal(before.toString(), 'abc')
})
