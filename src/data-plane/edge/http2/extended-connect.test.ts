import assert from 'node:assert/strict'
import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { describe, test } from 'node:test'
import { type RelayResult, relay } from '../../../lib/bytes/relay.ts'
import { socketStream } from '../../../lib/bytes/socket-stream.ts'
import { extended, RawVisitor } from './testing/test-frames.ts'
import { answer, client, head, serve } from './testing/test-server.ts'

describe('an extended CONNECT', () => {
  test('with a body is refused', async (t) => {
    const harness = await serve(t)
    const visitor = await RawVisitor.connect(harness.port)
    visitor.ask(1, [...extended, ['content-length', '1']], { isOpen: true })
    assert.equal(await visitor.answer(1), '400')
    assert.deepEqual(harness.bad, ['a CONNECT that opens no WebSocket'])
    visitor.socket.destroy()
  })

  for (const left of ['by closing its connection', 'by a reset', 'by a reset without an error'])
    test(`whose visitor leaves ${left} is cut, and resets the service`, async (t) => {
      const service = new PassThrough()
      const done = Promise.withResolvers<RelayResult>()
      const harness = await serve(t, (exchange) => {
        relay(exchange.upgrade(head(101, 'none')), socketStream(service), { onDone: done.resolve })
      })
      const visitor = await RawVisitor.connect(harness.port)
      visitor.ask(1, extended, { isOpen: true })
      assert.equal(await visitor.answer(1), '200')
      visitor.send('data', 0, 1, Buffer.from('half'))
      await visitor.frame('data', 1)
      if (left === 'by closing its connection') visitor.socket.destroy()
      else visitor.reset(1, left === 'by a reset' ? 8 : 0)
      const { there, error } = await done.promise
      assert.deepEqual([there, error?.message], [4, 'the stream was reset'])
      assert.ok(service.destroyed)
      visitor.socket.destroy()
    })

  test('whose handler throws is reset, and nothing else', async (t) => {
    const closed = Promise.withResolvers<Error | undefined>()
    const harness = await serve(t, (exchange) => {
      if (exchange.head.upgrade === undefined) answer(exchange)
      else
        exchange.upgrade(head(101, 'none')).attach({
          data() {
            throw new Error('broken')
          },
          end() {},
          drain() {},
          closed: closed.resolve,
        })
    })
    const visitor = await RawVisitor.connect(harness.port)
    visitor.ask(1, extended, { isOpen: true })
    assert.equal(await visitor.answer(1), '200')
    visitor.send('data', 0, 1, Buffer.from('some'))
    assert.ok(await closed.promise)
    assert.equal((await visitor.frame('reset', 1))?.payload.readUInt32BE(), 8)
    visitor.ask(3)
    assert.equal(await visitor.answer(3), '200')
    visitor.socket.destroy()
  })

  test('that is silent keeps its connection for longer than other requests', async (t) => {
    const aborted = Promise.withResolvers<void>()
    const harness = await serve(
      t,
      (exchange) => {
        if (exchange.head.upgrade === undefined) exchange.onAbort = aborted.resolve
        else relay(exchange.upgrade(head(101, 'none')), socketStream(echo))
      },
      { limits: { headBytes: 65_536, headers: 100, idleMs: 30 } },
    )
    const echo = new PassThrough()
    const session = client(t, harness.port)
    await once(session, 'remoteSettings')
    const stream = session.request(Object.fromEntries(extended), { endStream: false })
    await once(stream, 'response')
    client(t, harness.port)
      .request()
      .on('error', () => {})
    // The other connection began later, and was idle for too long.
    await aborted.promise
    stream.write('still here')
    const [data] = (await once(stream, 'data')) as [Buffer]
    assert.equal(data.toString(), 'still here')
    stream.end()
    await once(session, 'goaway')
  })
})
