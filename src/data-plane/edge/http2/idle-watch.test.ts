import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect as connectHttp2, createServer as createHttp2Server } from 'node:http2'
import { type AddressInfo, connect, createServer } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { socketStream } from '../../../lib/bytes/socket-stream.ts'
import { Sweep } from '../deadlines.ts'
import { defaultLimits } from '../http1/bounds.ts'
import { errorPages } from '../pages/error-page.ts'
import { Http2Upstream } from './http2-upstream.ts'
import { Http2Connection } from './server-connection.ts'
import { answer } from './testing/test-server.ts'

setFlagsFromString('--expose-gc')
const collect: () => void = runInNewContext('gc')

/** Resolves when what `weak` points to was collected; the runner ends a test for which that never comes. */
async function collected(weak: WeakRef<object>): Promise<void> {
  do {
    // Reading `weak` keeps it alive until the end of the turn, so it is collected in the next.
    await new Promise((resolve) => setImmediate(resolve))
    collect()
    await new Promise((resolve) => setImmediate(resolve))
  } while (weak.deref())
}

/** Serves HTTP/2 on a port of its own and keeps nothing of its connections but what a test may watch. */
async function serveWeakly(
  t: TestContext,
  { sweep, idleMs }: { sweep: Sweep; idleMs: number },
): Promise<{ port: number; seen: WeakRef<Http2Connection>[]; closed: () => number }> {
  const seen: WeakRef<Http2Connection>[] = []
  let closed = 0
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    const limits = { ...defaultLimits, idleMs }
    const onClosed = (): void => {
      closed++
    }
    const options = { socket, sweep, limits, onExchange: answer, onBad: errorPages().plain, onClosed }
    seen.push(new WeakRef(new Http2Connection(options)))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  return { port: (server.address() as AddressInfo).port, seen, closed: () => closed }
}

describe('a session of HTTP/2 that is over', { timeout: 60_000 }, () => {
  test('is not held in memory until its idle time has passed: that of a visitor', async (t) => {
    const { port, seen } = await serveWeakly(t, { sweep: new Sweep(), idleMs: 300_000 })
    const visit = async (): Promise<void> => {
      const session = connectHttp2(`http://127.0.0.1:${port}`)
      const stream = session.request().resume()
      await once(stream, 'close')
      session.close()
      await once(session, 'close')
    }
    await visit()
    const [connection] = seen
    assert.ok(connection)
    await collected(connection)
  })

  test('is not held in memory until its idle time has passed: that to a service', async (t) => {
    const server = createHttp2Server((_request, response) => response.end('hi')).listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.after(() => server.close())
    const sweep = new Sweep()
    const call = async (): Promise<WeakRef<Http2Upstream>> => {
      const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
      await once(socket, 'connect')
      const upstream = new Http2Upstream({ stream: socketStream(socket), sweep, idleMs: 300_000 })
      await upstream.ready
      upstream.close()
      await once(socket, 'close')
      return new WeakRef(upstream)
    }
    await collected(await call())
  })

  test('is closed though its visitor neither reads nor closes', async (t) => {
    const { port, closed } = await serveWeakly(t, { sweep: new Sweep({ everyMs: 5 }), idleMs: 40 })
    const visitor = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    t.after(() => visitor.destroy())
    visitor.on('error', () => {})
    // The preface and an empty SETTINGS frame; what comes back is never read, nor is the end answered.
    visitor.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
    visitor.write(Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]))
    while (closed() === 0) await new Promise((resolve) => setImmediate(resolve))
  })
})
