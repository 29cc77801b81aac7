import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { HeadReader } from './head-reader.ts'

test('a head ends at the first blank line of a chunk, wherever the chunk begins and whatever precedes the line', () => {
  const parts = fc.array(fc.constantFrom('\r', '\n', '\r\n', '\r\n\r\n', 'a', 'Host: x', 'b'.repeat(511)), {
    maxLength: 40,
  })
  fc.assert(
    fc.property(parts, fc.nat(20), (texts, from) => {
      const chunk = Buffer.from(texts.join(''))
      const at = Math.min(from, chunk.length)
      const end = chunk.indexOf('\r\n\r\n', at)
      fc.pre(end >= 0)
      const reader = new HeadReader(1 << 20)
      assert.equal(reader.take(chunk, at), true)
      assert.deepEqual([reader.next, reader.text], [end + 4, chunk.toString('latin1', at, end + 2)])
    }),
    { numRuns: 2000 },
  )
})
