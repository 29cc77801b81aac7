import assert from 'node:assert/strict'
import { test } from 'node:test'
import { drawBytes, drawHex } from './draw-bytes.ts'

test('no bytes are used twice, and no portion changes afterwards', () => {
  const drawn = Array.from({ length: 2000 }, (_, i) => drawBytes(12 + (i % 7)))
  const texts = drawn.map((bytes) => bytes.toString('hex'))
  assert.equal(new Set(texts.map((text) => text.slice(0, 24))).size, 2000)
  for (let i = 0; i < 2000; i++) drawBytes(12)
  assert.deepEqual(
    drawn.map((bytes) => bytes.toString('hex')),
    texts,
  )
  assert.deepEqual([drawn[0]?.length, drawn[6]?.length], [12, 18])
})

test('a portion has the requested length up to the maximum, and more is refused', () => {
  for (const count of [0, 1, 4095, 4096, 4096, 1]) assert.equal(drawBytes(count).length, count)
  assert.throws(() => drawBytes(4097), RangeError)
  assert.throws(() => drawHex(4097), RangeError)
})

test('all bits change', () => {
  const set = Buffer.alloc(16)
  const clear = Buffer.alloc(16)
  for (let i = 0; i < 1000; i++) {
    for (const [at, byte] of drawBytes(16).entries()) {
      set[at] = (set[at] ?? 0) | byte
      clear[at] = (clear[at] ?? 0) | ~byte
    }
  }
  assert.deepEqual([set, clear], [Buffer.alloc(16, 0xff), Buffer.alloc(16, 0xff)])
})

test('bytes that are drawn as text are used once, too', () => {
  const all = Array.from({ length: 1000 }, (_, i) => (i % 2 === 0 ? drawHex(16) : drawBytes(16).toString('hex')))
  assert.equal(new Set(all).size, 1000)
  assert.ok(all.every((text) => /^[0-9a-f]{32}$/.test(text)))
})
