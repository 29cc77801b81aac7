import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { ByteQueue } from './byte-queue.ts'

/** Bytes that repeat every 251, so that a part differs from its neighbours. */
const source = Buffer.from(Array.from({ length: 20_000 }, (_, i) => i % 251))

test('bytes leave in the order in which they came, whatever the sizes', () => {
  const step = fc.oneof(
    fc.record({ push: fc.integer({ min: 0, max: 5000 }), isLent: fc.boolean() }),
    fc.record({ shift: fc.integer({ min: 1, max: 9000 }) }),
    fc.record({ take: fc.integer({ min: 1, max: 9000 }) }),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const queue = new ByteQueue()
      let [written, read] = [0, 0]
      const next = (from: number, length: number): Buffer =>
        Buffer.from(source.subarray(from % 251, (from % 251) + length))
      for (const each of steps) {
        if ('push' in each) {
          const chunk = next(written, each.push)
          if (each.isLent) {
            queue.pushLent(chunk)
            chunk.fill(0xdb)
          } else queue.push(chunk)
          written += each.push
        } else {
          const got = 'shift' in each ? queue.shift(each.shift) : queue.take(each.take)
          if ('take' in each) assert.equal(got?.length, written - read >= each.take ? each.take : undefined)
          if (got) assert.deepEqual(got, next(read, got.length))
          read += got?.length ?? 0
        }
        assert.equal(queue.length, written - read)
      }
    }),
  )
})

describe('a queue uses about as much memory as it holds', () => {
  const cases = [
    // Fewer bytes from smaller chunks, since making each one allocates a chunk.
    { name: 'single bytes', piece: 1, source: 16 * 1024, all: 64 * 1024 },
    { name: 'small slices of large chunks', piece: 100, source: 64 * 1024, all: 256 * 1024 },
    { name: 'larger slices of large chunks', piece: 4 * 1024, source: 64 * 1024, all: 256 * 1024 },
    { name: 'whole chunks', piece: 64 * 1024, source: 64 * 1024, all: 256 * 1024 },
  ]
  for (const { name, piece, source, all } of cases) {
    test(name, () => {
      const queue = new ByteQueue()
      for (let held = 0; held < all; held += piece) queue.push(Buffer.allocUnsafeSlow(source).subarray(0, piece))
      const [bytes, backing] = [queue.length, new Set<ArrayBufferLike>()]
      let views = 0
      for (let chunk = queue.shift(64 * 1024); chunk; chunk = queue.shift(64 * 1024)) {
        backing.add(chunk.buffer)
        views++
      }
      const held = [...backing].reduce((sum, { byteLength }) => sum + byteLength, 0)
      assert.ok(held <= 2 * bytes + 64 * 1024 + 8 * 1024, `${held} bytes are held for ${bytes}`)
      assert.ok(views < 100, `${views} chunks`)
    })
  }
})

test('a short message in two parts takes little memory', () => {
  const queue = new ByteQueue()
  queue.pushLent(Buffer.alloc(4))
  queue.pushLent(Buffer.alloc(600))
  assert.equal(queue.shift(4)?.length, 4)
  const rest = queue.shift(600)
  assert.equal(rest?.length, 600)
  assert.ok((rest?.buffer.byteLength ?? Number.NaN) <= 1024)
})

test('a queue that was long can be reused after it was emptied or cleared', () => {
  const queue = new ByteQueue()
  const chunks = Array.from({ length: 200 }, (_, i) => Buffer.alloc(3000, i))
  for (const isCleared of [false, true, false]) {
    for (const chunk of chunks) queue.push(chunk)
    for (const chunk of isCleared ? chunks.slice(0, 100) : chunks) assert.equal(queue.shift(3000), chunk)
    if (isCleared) queue.clear()
    assert.equal(queue.length, 0)
    assert.equal(queue.shift(3000), undefined)
    for (const text of ['a', 'b']) queue.pushLent(Buffer.from(text))
    assert.equal(queue.take(2)?.toString(), 'ab')
  }
})
