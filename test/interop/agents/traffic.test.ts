/** What goes into a tunnel comes out unchanged and without delay, in every protocol. */
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { Agent, request } from 'node:https'
import { connect } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { readAll } from '../../support/read-all.ts'
import { tlsIdentity } from '../../support/tls-identity.ts'
import { http2Upstream, httpUpstream, tcpUpstream, tlsUpstream } from '../../support/upstream.ts'
import { askHttp2, beginVisit, dialTcp, exchange, openHttp2, visit } from '../../support/visitor.ts'
import { echoMessages, WebSocketVisitor } from '../../support/websocket.ts'
import { eachAgent } from './each-agent.ts'

const MB = 1024 * 1024
const UP = 8 * MB
const DOWN = 5 * MB

const small = { requests: 50, stallMs: 40, rounds: 5 }

const hashOf = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')

eachAgent((stage, test) => {
  test('8 MB up and 5 MB down over https, unchanged', async (t) => {
    const [up, down] = [randomBytes(UP), randomBytes(DOWN)]
    const { address } = await httpUpstream(t, (asked, response) => {
      void buffer(asked).then((body) => {
        response.setHeader('x-got', hashOf(body))
        response.end(down)
      })
    })
    const { url } = await stage.open(t, { addr: address })
    for (const version of ['1.1', '2'] as const) {
      const answer = await visit(url, stage.platform, { version, method: 'POST', body: up })
      assert.deepEqual([answer.status, answer.headers['x-got']], [200, hashOf(up)])
      assert.equal(hashOf(answer.body), hashOf(down))
    }
  })

  test('8 MB up and 5 MB down over tcp, at the same time, unchanged', async (t) => {
    const [up, down] = [randomBytes(UP), randomBytes(DOWN)]
    const got = Promise.withResolvers<Buffer>()
    const { address } = await tcpUpstream(t, (socket) => {
      socket.end(down)
      got.resolve(readAll(socket))
    })
    const { url } = await stage.open(t, { proto: 'tcp', addr: address })
    const socket = await dialTcp(url)
    socket.end(up)
    const [there, back] = await Promise.all([got.promise, readAll(socket)])
    assert.deepEqual([hashOf(there), hashOf(back)], [hashOf(up), hashOf(down)])
  })

  test(`${small.requests} small requests in a row do not wait for delayed acknowledgements`, async (t) => {
    const { address } = await httpUpstream(t, (_, response) => response.end('ok'))
    const { url } = await stage.open(t, { addr: address })
    const { hostname, port, host } = new URL(url)
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    t.after(() => agent.destroy())
    const to = { host: '127.0.0.1', port, servername: hostname, ca: stage.platform.ca, agent, headers: { host } }
    const ask = async (): Promise<number> => {
      const started = performance.now()
      const asked = request(to).end()
      const [response] = (await once(asked, 'response')) as [IncomingMessage]
      await buffer(response)
      return performance.now() - started
    }
    // A small write that waits for a delayed acknowledgement of the previous one stalls its request by that delay.
    // Other tests share the machine, so the best round counts: a stall would be in every one.
    const medians: number[] = []
    while (medians.length < small.rounds && !medians.some((each) => each < small.stallMs / 2)) {
      const times: number[] = []
      while (times.length < small.requests) times.push(await ask())
      medians.push(times.sort((a, b) => a - b)[small.requests / 2] ?? Number.NaN)
    }
    assert.ok(Math.min(...medians) < small.stallMs / 2, `medians in ms: ${medians.join(', ')}`)
  })

  test('WebSocket, both ways', async (t) => {
    const { address } = await httpUpstream(t, undefined, echoMessages)
    const { url } = await stage.open(t, { addr: address })
    const visitor = await WebSocketVisitor.open(url, stage.platform)
    t.after(() => visitor.close())
    for (const text of ['first', 'second', 'third']) {
      visitor.send(Buffer.from(text))
      assert.equal((await visitor.receive()).toString(), text)
    }
  })

  for (const version of ['1.1', '2'] as const) {
    test(`server-sent events arrive one by one over HTTP/${version}`, async (t) => {
      let send = (_event: string): void => assert.fail('there was no request')
      const { address } = await httpUpstream(t, (_, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        send = (event) => void response.write(`data: ${event}\n\n`)
        send('0')
      })
      const { url } = await stage.open(t, { addr: address })
      const { body, leave } = await beginReading(url, version)
      t.after(leave)
      const events = chunksOf(body)
      // Each event is sent only after the last one arrived, so nothing on the way may buffer it.
      for (let i = 0; i < 5; i++) {
        assert.equal(await events.next(), `data: ${i}\n\n`)
        send(String(i + 1))
      }
    })
  }

  test('HTTP/2: many concurrent requests on one connection', async (t) => {
    const { address } = await httpUpstream(t)
    const { url } = await stage.open(t, { addr: address })
    const session = openHttp2(url, stage.platform)
    t.after(() => session.destroy())
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, i) =>
        askHttp2(session, url, { method: 'POST', path: `/${i}`, body: `body ${i}` }),
      ),
    )
    assert.equal(session.alpnProtocol, 'h2')
    for (const [i, { status, text }] of answers.entries()) {
      const { url: path, body } = JSON.parse(text)
      assert.deepEqual([status, path, body], [200, `/${i}`, `body ${i}`])
    }
  })

  test('gRPC: HTTP/2 all the way, both bodies open, and the trailers', async (t) => {
    const { address } = await http2Upstream(t, (stream, headers) => {
      assert.equal(headers.te, 'trailers')
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0', 'grpc-message': 'fine' }))
      stream.pipe(stream)
    })
    const { url } = await stage.open(t, { addr: address, app_protocol: 'http2' })
    const session = openHttp2(url, stage.platform)
    t.after(() => session.destroy())
    const call = session.request({
      ':method': 'POST',
      ':path': '/a.Service/Talk',
      ':authority': new URL(url).host,
      'content-type': 'application/grpc',
      te: 'trailers',
    })
    call.setEncoding('utf8')
    const trailers = once(call, 'trailers')
    const messages = chunksOf(call)
    for (const message of ['one', 'two']) {
      call.write(message)
      assert.equal(await messages.next(), message)
    }
    call.end()
    const [given] = (await trailers) as [Record<string, string>]
    assert.deepEqual([given['grpc-status'], given['grpc-message']], ['0', 'fine'])
  })

  test('half-close: the answer comes after the visitor has ended', async (t) => {
    const { address } = await tcpUpstream(t, (socket) => {
      void readAll(socket).then((all) => socket.end(`${all.length} bytes`))
    })
    const { url } = await stage.open(t, { proto: 'tcp', addr: address })
    assert.equal(await exchange(await dialTcp(url), Buffer.alloc(MB)), `${MB} bytes`)
  })

  test('half-close: the service ends first and still receives', async (t) => {
    const got = Promise.withResolvers<Buffer>()
    const { address } = await tcpUpstream(t, (socket) => {
      socket.end('that was all')
      got.resolve(readAll(socket))
    })
    const { url } = await stage.open(t, { proto: 'tcp', addr: address })
    const socket = await dialTcp(url)
    assert.equal((await readAll(socket)).toString(), 'that was all')
    socket.end('heard nevertheless')
    assert.equal((await got.promise).toString(), 'heard nevertheless')
  })

  for (const version of ['1.1', '2'] as const) {
    test(`a visitor that goes away in the middle is gone for the service too, over HTTP/${version}`, async (t) => {
      const closed = Promise.withResolvers<void>()
      const { address } = await httpUpstream(t, (_, response) => {
        // Over HTTP/1.1 the visitor may have half-closed: only a write shows that it is gone.
        const writing = setInterval(() => response.write('some'), 10)
        response.on('close', () => {
          clearInterval(writing)
          closed.resolve()
        })
      })
      const { url } = await stage.open(t, { addr: address })
      const visitor = await beginReading(url, version)
      await once(visitor.body, 'data')
      visitor.leave()
      await closed.promise
    })
  }

  async function beginReading(url: string, version: '1.1' | '2') {
    if (version === '1.1') {
      const asked = beginVisit(url, stage.platform)
      asked.on('error', () => {})
      const [body] = (await once(asked, 'response')) as [IncomingMessage]
      body.on('error', () => {})
      return { body, leave: () => void asked.destroy() }
    }
    const session = openHttp2(url, stage.platform)
    const body = session.request({ ':path': '/', ':authority': new URL(url).host })
    body.on('error', () => {})
    await once(body, 'response')
    return { body, leave: () => session.destroy() }
  }

  test('when a service breaks off in the middle, the visitor sees an incomplete answer', async (t) => {
    const { address } = await httpUpstream(t, (_, response) => {
      response.writeHead(200, { 'content-length': '1000' })
      response.write('only this', () => response.socket?.destroy())
    })
    const { url } = await stage.open(t, { addr: address })
    for (const version of ['1.1', '2'] as const) {
      await assert.rejects(visit(url, stage.platform, { version }))
    }
  })

  test('a visitor that does not read does not block others', async (t) => {
    const { address } = await tcpUpstream(t, (socket) => {
      socket.once('data', (first) => socket.end(first[0] === 0x21 ? Buffer.alloc(64 * MB) : 'quick'))
    })
    const { url } = await stage.open(t, { proto: 'tcp', addr: address })
    const stalled = await dialTcp(url)
    t.after(() => stalled.destroy())
    stalled.pause().write('!')
    for (let i = 0; i < 20; i++) {
      const socket = await dialTcp(url)
      socket.write('?')
      assert.equal((await readAll(socket)).toString(), 'quick')
      socket.destroy()
    }
  })

  for (const version of [1, 2] as const) {
    test(`PROXY protocol version ${version} gives a TCP service the visitor's address`, async (t) => {
      const { address } = await tcpUpstream(t)
      const { url } = await stage.open(t, { proto: 'tcp', addr: address, proxy_proto: version })
      const socket = await dialTcp(url)
      const { localPort = 0 } = socket
      socket.end('then this')
      // It echoes, so that the visitor sees what the service saw.
      assertProxied(await readAll(socket), version, localPort, 'then this')
    })
  }

  test('PROXY protocol gives an HTTP service the address of each visitor, despite kept connections', async (t) => {
    const { address } = await tcpUpstream(t, (socket) => {
      let line = ''
      socket.on('data', (bytes) => {
        const text = bytes.toString('latin1')
        if (line === '') line = text.slice(0, text.indexOf('\r\n'))
        const body = line.split(' ')[2] ?? ''
        socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`)
      })
    })
    const { url } = await stage.open(t, { addr: address, proxy_proto: 1 })
    for (const from of ['127.0.0.1', '127.0.0.2', '127.0.0.1', '127.0.0.3', '127.0.0.2']) {
      assert.equal((await visit(url, stage.platform, { from })).text, from)
    }
  })

  test('PROXY protocol comes before the TLS of a service that wants both', async (t) => {
    const identity = await tlsIdentity()
    const inner = await tlsUpstream(t, identity, (socket) => socket.end('behind TLS'))
    const first = Promise.withResolvers<Buffer>()
    const { address } = await tcpUpstream(t, (socket) => {
      socket.once('data', (bytes) => {
        const end = bytes.indexOf('\r\n') + 2
        first.resolve(bytes.subarray(0, end))
        const far = connect(inner.port, '127.0.0.1')
        far.on('error', () => {})
        far.write(bytes.subarray(end))
        socket.pipe(far).pipe(socket)
      })
    })
    const { url } = await stage.open(t, { proto: 'tcp', addr: `tls://${address}`, proxy_proto: 1 })
    const socket = await dialTcp(url)
    assert.equal(await exchange(socket, 'hello'), 'behind TLS')
    assert.match((await first.promise).toString(), /^PROXY TCP4 127\.0\.0\.1 127\.0\.0\.1 \d+ \d+\r\n$/)
  })
})

function assertProxied(bytes: Buffer, version: 1 | 2, port: number, rest: string): void {
  if (version === 1) {
    const [line = '', ...after] = bytes.toString('latin1').split('\r\n')
    const [name, family, from, to, fromPort] = line.split(' ')
    assert.deepEqual([name, family, from, to, fromPort], ['PROXY', 'TCP4', '127.0.0.1', '127.0.0.1', String(port)])
    assert.equal(after.join('\r\n'), rest)
    return
  }
  assert.equal(bytes.subarray(0, 14).toString('latin1'), '\r\n\r\n\0\r\nQUIT\n\x21\x11')
  const end = 16 + bytes.readUInt16BE(14)
  assert.deepEqual([...bytes.subarray(16, 20)], [127, 0, 0, 1])
  assert.equal(bytes.readUInt16BE(24), port)
  assert.equal(bytes.subarray(end).toString(), rest)
}

/** Reads a stream chunk by chunk, as text. */
function chunksOf(stream: NodeJS.ReadableStream) {
  const chunks = stream[Symbol.asyncIterator]()
  return {
    async next(): Promise<string> {
      const { value } = await chunks.next()
      return String(value)
    },
  }
}
