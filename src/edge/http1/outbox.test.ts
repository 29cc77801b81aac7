import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { GATHER_BYTES } from './bounds.ts'
import { Outbox } from './outbox.ts'
import { TestStream } from './test-stream.ts'
import { turn } from './test-visitor.ts'

describe('an outbox', () => {
  test('sends small pieces together at the end of the turn, in their order', async () => {
    const stream = new TestStream()
    const out = new Outbox(stream)
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
    const out = new Outbox(stream)
    const piece = Buffer.alloc(1000, 'x')
    for (let i = 0; i < 100; i++) out.write(piece)
    assert.ok(stream.writes.length >= 5)
    assert.ok(stream.writes.every(({ length }) => length <= GATHER_BYTES))
  })

  test('sends a large piece as it is, after what came before it', () => {
    const stream = new TestStream()
    const out = new Outbox(stream)
    const large = Buffer.alloc(GATHER_BYTES + 1, 'x')
    out.text('before')
    out.write(large)
    out.text('after')
    out.flush()
    assert.deepEqual(
      stream.writes.map((chunk) => (chunk === large ? 'large' : chunk.toString())),
      ['before', 'large', 'after'],
    )
  })

  test('sends a lone small piece as it is', () => {
    const stream = new TestStream()
    const out = new Outbox(stream)
    const small = Buffer.from('small')
    out.write(small)
    out.flush()
    assert.equal(stream.writes[0], small)
  })

  test('asks to wait from when the stream does until it drains', () => {
    const stream = new TestStream()
    const out = new Outbox(stream)
    stream.hasRoom = false
    assert.equal(out.write(Buffer.from('x')), true)
    out.flush()
    assert.equal(out.write(Buffer.from('y')), false)
    out.drained()
    assert.equal(out.write(Buffer.from('z')), true)
  })
})
