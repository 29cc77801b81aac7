import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http2'
import { type AddressInfo, connect } from 'node:net'
import { test } from 'node:test'
import { socketStream } from '../../../lib/bytes/socket-stream.ts'
import { HeaderList } from '../../../lib/http/header-list.ts'
import { Sweep } from '../deadlines.ts'
import { Http2Upstream } from './http2-upstream.ts'

test('a request with 120 KB of headers, as an operator may allow, reaches a service that speaks HTTP/2', async (t) => {
  const server = createServer({ settings: { maxHeaderListSize: 200_000 } })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const heard = Promise.withResolvers<number>()
  server.on('stream', (stream, headers) => {
    heard.resolve(Object.values(headers).join('').length)
    stream.respond({ ':status': 204 }, { endStream: true })
  })
  const socket = connect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', allowHalfOpen: true })
  await once(socket, 'connect')
  const upstream = new Http2Upstream({ stream: socketStream(socket), sweep: new Sweep() })
  await upstream.ready
  const big = ['a', 'b', 'c', 'd'].map((name) => [`x-${name}`, 'x'.repeat(30_000)] as const)
  const headers = HeaderList.of([['host', 'a.test'], ...big])
  const answered = Promise.withResolvers<number>()
  upstream.connection().send(
    { method: 'GET', target: '/', headers, body: 'none', upgrade: undefined },
    {
      inform() {},
      respond: ({ status }) => answered.resolve(status),
      upgraded() {},
      failed: (error) => answered.reject(error),
    },
  )
  assert.equal(await answered.promise, 204)
  assert.ok((await heard.promise) > 120_000)
  upstream.close()
})
