import assert from 'node:assert/strict'
import { buffer } from 'node:stream/consumers'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { frameTypes, RawVisitor, usual } from './testing/test-frames.ts'
import { answer, client, serve } from './testing/test-server.ts'

describe('a hostile visitor', () => {
  test('gets no more than a bounded number of requests at once', async (t) => {
    const harness = await serve(t, () => {})
    const visitor = await RawVisitor.connect(harness.port)
    // The bound applies once the visitor has acknowledged it.
    visitor.ask(1)
    await visitor.frame('settings', 0)
    for (let i = 1; i < 200; i++) visitor.ask(2 * i + 1)
    await visitor.closed()
    assert.ok(harness.exchanges.length <= 128, `${harness.exchanges.length}`)
    assert.equal(harness.closed, 1)
  })

  test('that starts requests only to reset them is turned away', async (t) => {
    const harness = await serve(t, () => {})
    const visitor = await RawVisitor.connect(harness.port)
    for (let i = 0; i < 5000 && !visitor.isClosed; i++) {
      visitor.ask(2 * i + 1)
      visitor.reset(2 * i + 1, 8)
      if (i % 100 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    await visitor.closed()
    assert.ok(harness.exchanges.length < 1000, `${harness.exchanges.length}`)
    assert.equal(harness.closed, 1)
  })

  const floods: Record<string, (visitor: RawVisitor, i: number) => void> = {
    'sends pings and does not read the answers': (visitor) => visitor.send('ping', 0, 0, Buffer.alloc(8)),
    'changes its settings without end and does not read': (visitor) =>
      visitor.send('settings', 0, 0, Buffer.from('000400010000', 'hex')),
    'sends a head without end': (visitor, i) => {
      if (i === 0) visitor.send('headers', 0, 1)
      else visitor.send('continuation', 0, 1, Buffer.from([0, 1, 0x78, 1, 0x79]))
    },
    'sends the rest of a head that it did not start': (visitor, i) => {
      if (i === 0) visitor.ask(1, usual, { isOpen: true })
      else visitor.send('continuation', 0, 1)
    },
    'opens the window beyond its bound': (visitor) =>
      visitor.send('windowUpdate', 0, 0, Buffer.from('7fffffff', 'hex')),
  }
  for (const [name, send] of Object.entries(floods)) {
    test(`that ${name} is turned away`, async (t) => {
      const harness = await serve(t, () => {})
      const visitor = await RawVisitor.connect(harness.port)
      visitor.socket.pause()
      for (let i = 0; i < 400_000 && harness.closed === 0; i++) {
        send(visitor, i)
        if (visitor.socket.writableLength > 1_000_000 || i % 1000 === 0)
          await new Promise((resolve) => setImmediate(resolve))
      }
      assert.equal(harness.closed, 1)
      visitor.socket.destroy()
    })
  }

  test('that does not speak HTTP/2 is turned away', async (t) => {
    const harness = await serve(t)
    const visitor = await RawVisitor.connect(harness.port)
    visitor.socket.write('GET / HTTP/1.1\r\nHost: a.test\r\n\r\n')
    await visitor.closed()
    assert.equal(harness.exchanges.length, 0)
  })
})

describe('whatever a visitor sends', () => {
  test('costs its own connection at most', async (t) => {
    const harness = await serve(t, (exchange) => {
      exchange.onAbort = () => {}
      exchange.body.read({ data() {}, end: () => answer(exchange), failed() {} })
    })
    const types = Object.keys(frameTypes) as (keyof typeof frameTypes)[] // keys of that very table
    const step = fc.oneof(
      fc.record({ stream: fc.constantFrom(1, 3, 5, 7), isOpen: fc.boolean() }),
      fc.record({
        type: fc.constantFrom(...types),
        flag: fc.constantFrom(0, 1, 4, 5, 8, 0x20, 255),
        stream: fc.constantFrom(0, 1, 2, 3, 5),
        payload: fc.uint8Array({ maxLength: 20 }),
      }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        const visitor = await RawVisitor.connect(harness.port)
        for (const each of steps) {
          if ('type' in each) visitor.send(each.type, each.flag, each.stream, Buffer.from(each.payload))
          else visitor.ask(each.stream, usual, { isOpen: each.isOpen })
        }
        visitor.socket.end()
        await visitor.closed()
      }),
      { numRuns: 300 },
    )
    assert.deepEqual(harness.broken, [])
    assert.equal((await buffer(client(t, harness.port).request())).toString(), 'ok')
  })

  test('a reset with an error right after the request does no harm', async (t) => {
    const aborted = Promise.withResolvers<void>()
    const harness = await serve(t, (exchange) => {
      exchange.onAbort = aborted.resolve
    })
    const visitor = await RawVisitor.connect(harness.port)
    visitor.socket.cork()
    visitor.ask(1)
    visitor.reset(1, 2)
    visitor.socket.uncork()
    await aborted.promise
    visitor.socket.destroy()
  })
})
