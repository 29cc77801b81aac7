import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { RecordRing } from './record-ring.ts'

/** Writes a record, after asking for room for `more` bytes than it needs. */
function write(ring: RecordRing, text: string, more = 0): number {
  const at = ring.room(text.length + more)
  if (at < 0) return at
  ring.bytes.write(text, at, 'latin1')
  ring.keep(text.length)
  return at
}

function all(ring: RecordRing): string[] {
  const found: string[] = []
  for (let i = ring.oldest; i < ring.next; i++) found.push(ring.read(i)?.toString('latin1') ?? 'gone')
  return found
}

test('the latest records are kept as they were written', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 40, max: 400 }),
      fc.integer({ min: 1, max: 40 }),
      fc.array(fc.tuple(fc.string({ unit: 'grapheme-ascii', maxLength: 60 }), fc.nat({ max: 30 })), { maxLength: 200 }),
      (bytes, usualBytes, texts) => {
        const ring = new RecordRing({ bytes, usualBytes })
        const written: string[] = []
        for (const [text, more] of texts) {
          if (write(ring, text, more) >= 0) written.push(text)
          const there = all(ring)
          assert.deepEqual(there, written.slice(written.length - there.length))
        }
        assert.ok(ring.bytes.length <= bytes)
      },
    ),
  )
})

test('a record that is longer than all the memory removes no others', () => {
  const ring = new RecordRing({ bytes: 100, usualBytes: 34 })
  write(ring, 'first')
  assert.equal(write(ring, 'x'.repeat(101)), -1)
  assert.deepEqual(all(ring), ['first'])
})

test('the oldest record is dropped first, when there is no room or no place', () => {
  const short = new RecordRing({ bytes: 20 + 2 * 16, usualBytes: 10 })
  for (const text of ['a', 'b', 'c']) write(short, text)
  assert.deepEqual(all(short), ['b', 'c'])
  const long = new RecordRing({ bytes: 20 + 2 * 16, usualBytes: 10 })
  for (const text of ['a', 'b'.repeat(15)]) write(long, text)
  assert.equal(long.read(0)?.toString(), 'a')
  write(long, 'c'.repeat(6))
  assert.deepEqual([long.read(0), long.read(1), long.read(2)?.toString()], [undefined, undefined, 'cccccc'])
})

test('room that was not needed is used by the next record', () => {
  const ring = new RecordRing({ bytes: 20 + 2 * 16, usualBytes: 10 })
  write(ring, 'a', 19)
  write(ring, 'b'.repeat(19))
  assert.deepEqual(all(ring), ['a', 'b'.repeat(19)])
})

test('a number that is not used yet, or is not valid, finds nothing', () => {
  const ring = new RecordRing({ bytes: 100, usualBytes: 10 })
  write(ring, 'a')
  for (const number of [-1, 1, Number.NaN]) assert.equal(ring.read(number), undefined)
})
