import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { GATHER_BYTES } from './bounds.ts'
import { Http1Outbox } from './response-outbox.ts'
import { turn } from './testing/memory-visitor.ts'
import { TestStream } from './testing/test-stream.ts'

describe('an outbox', () => {
  test('sends small pieces together at the end of the turn, in their order', async () => {
    const stream = new TestStream()
    const out = new Http1Outbox(stream)
    out.text('h\xe9ad ')
    out.write(Buffer.from('one '))
    out.write(Buffer.from('two'))
    assert.equal(stream.writes.length, 0)
    await turn()
    assert.deepEqual([stream.writes.length, stream.sent, out.bytes], [1, 'h\xe9ad one two', 12])
    out.text('three')
    await turn()
    assert.deepEqual([stream.writes.length, stream.sent], [2, 'h\xe9ad one twothree'])
  })

  test('sends them earlier when they are many', () => {
    const stream = new TestStream()
    const out = new Http1Outbox(stream)
    const piece = Buffer.alloc(1000, 'x')
    for (let i = 0; i < 100; i++) out.write(piece)
    assert.ok(stream.writes.length >= 5)
    assert.ok(stream.writes.every(({ length }) => length <= GATHER_BYTES))
  })

  test('sends a large piece uncopied, after what came before it', () => {
    const stream = new TestStream()
    const out = new Http1Outbox(stream)
    const large = Buffer.alloc(GATHER_BYTES + 1, 'x')
    out.text('before')
    out.write(large)
    out.text('after')
    out.flush()
    assert.deepEqual(
      stream.writes.map((chunk) => (chunk.equals(large) ? 'large' : chunk.toString())),
      ['before', 'large', 'after'],
    )
  })

  test('keeps nothing of what it is lent, small or large', () => {
    const stream = new TestStream()
    const out = new Http1Outbox(stream)
    for (const bytes of [5, 1000, GATHER_BYTES, GATHER_BYTES + 1]) {
      const lent = Buffer.alloc(bytes, 'x')
      out.write(lent)
      lent.fill('~')
      out.flush()
      assert.equal(stream.take(), 'x'.repeat(bytes))
    }
  })

  test('sends a head and the body that was announced with it in one piece of their size', () => {
    const stream = new TestStream()
    const out = new Http1Outbox(stream)
    out.text('head ', 8)
    out.write(Buffer.from('half'))
    out.write(Buffer.from('half'))
    out.flush()
    assert.deepEqual(stream.writes.map(String), ['head halfhalf'])
    assert.equal(stream.writes[0]?.length, 13)
  })

  test('sends more than was announced, and less, unchanged', () => {
    const stream = new TestStream()
    const out = new Http1Outbox(stream)
    out.text('a', 2)
    out.write(Buffer.from('longer'))
    out.flush()
    out.text('b', 1e9)
    out.write(Buffer.from('shorter'))
    out.flush()
    assert.equal(stream.sent, 'alongerbshorter')
  })

  test('sends what must leave at once after what was gathered, however long it is', () => {
    const stream = new TestStream()
    const out = new Http1Outbox(stream)
    out.send('one ')
    out.text('two ')
    out.send('three ')
    const long = 'x'.repeat(3 * GATHER_BYTES)
    out.send(long)
    out.send(' four')
    assert.equal(stream.sent, `one two three ${long} four`)
  })

  test('asks to wait once the stream does, until it drains', () => {
    const stream = new TestStream()
    const out = new Http1Outbox(stream)
    stream.hasRoom = false
    assert.equal(out.write(Buffer.from('x')), true)
    out.flush()
    assert.equal(out.write(Buffer.from('y')), false)
    out.drained()
    assert.equal(out.write(Buffer.from('z')), true)
  })
})
