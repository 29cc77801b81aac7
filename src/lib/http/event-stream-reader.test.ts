import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EventStreamReader } from './event-stream-reader.ts'

const text = ': hello\n\nevent: following\ndata: {}\n\nid: ex_1\nevent: exchange\ndata: {"path":"/a: b"}\n\n'
const events = [
  { name: 'following', data: '{}' },
  { name: 'exchange', data: '{"path":"/a: b"}' },
]

test('events are read however the text is cut, and comments are ignored', () => {
  for (let size = 1; size <= text.length; size++) {
    const reader = new EventStreamReader()
    const parts = Array.from({ length: Math.ceil(text.length / size) }, (_, i) => text.slice(i * size, (i + 1) * size))
    assert.deepEqual(
      parts.flatMap((part) => reader.read(part)),
      events,
      String(size),
    )
  }
})

test('an event without an end is an error', () => {
  const reader = new EventStreamReader()
  assert.throws(() => {
    for (let i = 0; i < 20; i++) reader.read('x'.repeat(100_000))
  }, /no end/)
})
