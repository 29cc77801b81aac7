import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import http from 'node:http'
import net from 'node:net'
import { after, before, describe, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { socketStream } from '../../../lib/bytes/socket-stream.ts'
import { HeaderList } from '../../../lib/http/header-list.ts'
import { visitorErrors } from '../../../model/visitor-errors.ts'
import { Sweep } from '../deadlines.ts'
import { Http1Connection } from './server-connection.ts'
import type { Http1Exchange } from './server-exchange.ts'
import { forward } from './testing/test-forward.ts'
import { Http1Upstream } from './upstream-connection.ts'

const sweep = new Sweep()
const agent = new http.Agent({ keepAlive: true })
const sockets = new Set<net.Socket>()
const kept: Http1Upstream[] = []
let dials = 0

/** The handlers of the service, by path. */
const service: Record<string, http.RequestListener> = {
  '/hello': (_, response) => {
    response.setHeader('Content-Length', 5)
    response.end('hello')
  },
  '/stream': (_, response) => {
    response.write('one')
    setTimeout(() => response.end('two'), 5)
  },
  '/echo': (request, response) => {
    response.on('error', () => {})
    request.pipe(response)
  },
  '/hash': (request, response) => {
    const hash = createHash('sha256')
    request.on('data', (chunk: Buffer) => hash.update(chunk))
    request.on('end', () => {
      response.addTrailers({ 'X-Seen': JSON.stringify(request.trailers) })
      response.end(hash.digest('hex'))
    })
  },
  '/trailers': (_, response) => {
    response.writeHead(200, { Trailer: 'X-Sum' })
    response.write('body')
    response.addTrailers({ 'X-Sum': 'abc' })
    response.end()
  },
  '/hints': (_, response) => {
    response.writeEarlyHints({ link: '</a.css>; rel=preload' }, () => response.end('hinted'))
  },
  '/nothing': (_, response) => {
    response.writeHead(204)
    response.end()
  },
  '/same': (_, response) => {
    response.writeHead(304, { ETag: '"a"' })
    response.end()
  },
  '/old': ({ socket }) => {
    socket.end('HTTP/1.0 200 OK\r\n\r\nas in the old days')
  },
  '/cut': (request, response) => {
    response.writeHead(200, { 'Content-Length': 100 })
    response.write('only this', () => request.socket.destroy())
  },
  '/refuse': (_, response) => {
    response.writeHead(413, { Connection: 'close' })
    response.end('too much')
  },
}

const server = http.createServer((request, response) => {
  const handle = service[request.url ?? '']
  if (handle) handle(request, response)
  else response.writeHead(404).end()
})
server.on('upgrade', (request, socket, early: Buffer) => {
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${request.headers.upgrade}\r\n\r\nfirst`,
  )
  socket.write(early)
  socket.pipe(socket)
})

const edge = net.createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
  sockets.add(socket)
  socket.on('close', () => sockets.delete(socket))
  new Http1Connection({
    stream: socketStream(socket),
    sweep,
    onExchange: (exchange) => void carry(exchange),
    onBad: (code) => ({
      head: { status: visitorErrors[code].status, reason: '', headers: new HeaderList(), body: 'none' },
      body: Buffer.from(code),
    }),
    onBroken: (cause) => console.error(cause),
  })
})

async function carry(exchange: Http1Exchange): Promise<void> {
  forward(exchange, kept.pop() ?? (await dial()))
}

async function dial(): Promise<Http1Upstream> {
  dials++
  const socket = net.connect({ port: portOf(server), allowHalfOpen: true, noDelay: true })
  await once(socket, 'connect')
  const upstream = new Http1Upstream({ stream: socketStream(socket, { outlivesFailedWrite: true }), sweep })
  upstream.onChange = () => {
    if (upstream.isFree) kept.push(upstream)
    else if (kept.includes(upstream)) kept.splice(kept.indexOf(upstream), 1)
  }
  return upstream
}

function portOf(listener: net.Server): number {
  const address = listener.address()
  assert.ok(address && typeof address === 'object')
  return address.port
}

interface Answer {
  readonly status: number
  readonly body: Buffer
  readonly response: http.IncomingMessage
}

interface Request {
  readonly method?: string
  readonly headers?: http.OutgoingHttpHeaders
  readonly body?: Buffer
  readonly onRequest?: (request: http.ClientRequest) => void
}

async function ask(path: string, { method = 'GET', headers = {}, body, onRequest }: Request = {}): Promise<Answer> {
  const request = http.request({ port: portOf(edge), path, method, headers, agent })
  onRequest?.(request)
  // Errors that matter show in the response.
  request.on('error', () => {})
  request.end(body)
  const [response] = (await once(request, 'response')) as [http.IncomingMessage]
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  return { status: response.statusCode ?? 0, body: Buffer.concat(chunks), response }
}

/** All that comes back for `text` on a connection of its own. */
async function talk(text: string): Promise<string> {
  const socket = net.connect({ port: portOf(edge), allowHalfOpen: true })
  let heard = ''
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    heard += chunk
  })
  socket.end(text, 'latin1')
  await once(socket, 'end')
  return heard
}

before(async () => {
  for (const listener of [server, edge]) await once(listener.listen(0, '127.0.0.1'), 'listening')
})

after(() => {
  agent.destroy()
  for (const upstream of kept.splice(0)) upstream.close()
  for (const socket of sockets) socket.destroy()
  server.closeAllConnections()
  server.close()
  edge.close()
})

describe('over real sockets', () => {
  test('requests of kept connections share one upstream connection', async () => {
    const before = dials
    for (let i = 0; i < 20; i++) assert.equal((await ask('/hello')).body.toString(), 'hello')
    assert.ok(dials - before <= 1)
    assert.equal(sockets.size, 1)
  })

  test('many at once each get their own answer', async () => {
    const answers = await Promise.all(
      Array.from({ length: 50 }, async (_, i) => {
        const body = Buffer.from(`number ${i}`)
        return [body.toString(), (await ask('/echo', { method: 'POST', body })).body.toString()]
      }),
    )
    for (const [sent, got] of answers) assert.equal(got, sent)
  })

  test('an answer in pieces, one with trailers, one with hints', async () => {
    assert.equal((await ask('/stream')).body.toString(), 'onetwo')
    const { response } = await ask('/trailers')
    assert.equal(response.trailers['x-sum'], 'abc')
    let hints: unknown
    const onRequest = (request: http.ClientRequest): void => {
      request.on('information', (information) => {
        hints = information.headers
      })
    }
    assert.equal((await ask('/hints', { onRequest })).body.toString(), 'hinted')
    assert.deepEqual(hints, { link: '</a.css>; rel=preload' })
  })

  test('answers without a body', async () => {
    const head = await ask('/hello', { method: 'HEAD' })
    assert.deepEqual([head.status, head.response.headers['content-length'], head.body.length], [200, '5', 0])
    assert.equal((await ask('/nothing')).status, 204)
    assert.deepEqual((await ask('/same')).response.headers.etag, '"a"')
    assert.equal((await ask('/missing')).status, 404)
  })

  test('an answer that ends with its connection', async () => {
    assert.equal((await ask('/old')).body.toString(), 'as in the old days')
  })

  test('large bodies arrive unchanged, both ways, with a length and in chunks', async () => {
    const body = randomBytes(8 * 1024 * 1024)
    const sum = createHash('sha256').update(body).digest('hex')
    for (const headers of [{ 'Content-Length': body.length }, { 'Transfer-Encoding': 'chunked' }]) {
      assert.equal((await ask('/hash', { method: 'PUT', headers, body })).body.toString(), sum)
      const back = await ask('/echo', { method: 'PUT', headers, body })
      assert.equal(createHash('sha256').update(back.body).digest('hex'), sum)
    }
  })

  test('a visitor that waits for a 100 gets it', async () => {
    const headers = { Expect: '100-continue', 'Content-Length': 5 }
    const request = http.request({ port: portOf(edge), path: '/echo', method: 'POST', headers, agent })
    request.flushHeaders()
    await once(request, 'continue')
    request.end('hello')
    const [response] = (await once(request, 'response')) as [http.IncomingMessage]
    assert.equal((await response.toArray()).join(''), 'hello')
  })

  test('an answer that is cut short is an error for the visitor', async () => {
    await assert.rejects(ask('/cut'), { code: 'ECONNRESET' })
  })

  test('an answer before the end of a large request reaches the visitor', async () => {
    const { status, body } = await ask('/refuse', { method: 'POST', body: Buffer.alloc(200_000) })
    assert.deepEqual([status, body.toString()], [413, 'too much'])
  })

  test('an upgrade carries bytes both ways from the first byte', async () => {
    const headers = { Connection: 'Upgrade', Upgrade: 'echo' }
    const request = http.request({ port: portOf(edge), path: '/', headers })
    request.end()
    const [response, socket, early] = (await once(request, 'upgrade')) as [http.IncomingMessage, net.Socket, Buffer]
    assert.equal(response.headers.upgrade, 'echo')
    let heard = early.toString()
    socket.on('data', (chunk: Buffer) => {
      heard += chunk.toString()
    })
    socket.end('second')
    await once(socket, 'close')
    assert.equal(heard, 'firstsecond')
  })

  test('a visitor that leaves closes its upstream connection', async () => {
    const asked = once(server, 'request')
    service['/wait'] = () => {}
    const request = http.request({ port: portOf(edge), path: '/wait' })
    request.on('error', () => {})
    request.end()
    const [incoming] = (await asked) as [http.IncomingMessage]
    const closed = new Promise((resolve) => incoming.socket.on('close', resolve))
    // A close with a reset, as by a program that was killed.
    request.socket?.resetAndDestroy()
    await closed
  })

  test('a visitor that half-closes after several requests gets the answers to all but the last', async () => {
    const get = 'GET /hello HTTP/1.1\r\nHost: a\r\n\r\n'
    const heard = await talk(get + get + get)
    assert.equal(heard.split('hello').length - 1, 2)
  })

  test('an invalid request is answered after those before it, and ends the connection', async () => {
    const heard = await talk(
      'GET /hello HTTP/1.1\r\nHost: a\r\n\r\nGET /hello HTTP/1.2\r\n\r\nGET /hello HTTP/1.1\r\nHost: a\r\n\r\n',
    )
    assert.match(heard, /^HTTP\/1.1 200 .*hello.*HTTP\/1.1 505 .*Connection: close\r\n\r\nHTTP_VERSION_UNSUPPORTED$/s)
  })

  test('a visitor that does not read stops the upstream, and memory stays small', async () => {
    let written = 0
    service['/endless'] = (_, response) => {
      const chunk = Buffer.alloc(64 * 1024)
      const push = (): void => {
        while (!response.destroyed) {
          written += chunk.length
          if (!response.write(chunk)) break
        }
      }
      response.on('drain', push)
      push()
    }
    const socket = net.connect({ port: portOf(edge) })
    socket.pause()
    socket.write('GET /endless HTTP/1.1\r\nHost: a\r\n\r\n')
    // Until nothing moves any more: buffers of the system on the way hold some megabytes.
    let before = -1
    while (before !== written || written === 0) {
      before = written
      for (let i = 0; i < 200; i++) await setImmediate()
    }
    const [edgeSocket] = [...sockets].slice(-1)
    assert.ok(edgeSocket && edgeSocket.writableLength < 256 * 1024, `${edgeSocket?.writableLength} bytes wait`)
    socket.destroy()
  })
})
