/** HTTP/1.0 (D101): what its clients get, on both listeners, whatever answers them. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, type TestContext, test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import type { Phases } from '../../../modules/phases.ts'
import { caPem, httpService, Plane, testEdge } from '../testing/test-http-plane.ts'

type Listener = 'plain' | 'tls'
const listeners: readonly Listener[] = ['plain', 'tls']

interface Served {
  readonly isEndpoint?: boolean
  readonly phases?: Pick<Phases, 'request' | 'response'>
}

/** A plane whose service answers without a length, and shows what it was asked. */
async function start(t: TestContext, listener: Listener, { isEndpoint = false, phases = {} }: Served = {}) {
  const service = await httpService(t, (request, response) => {
    const { method, url, httpVersion, headers } = request
    void text(request).then((body) => {
      response.writeHead(200, { 'x-seen': `${method} ${url} ${httpVersion} ${headers.host} ${body}` })
      response.flushHeaders()
      response.write('hello ')
      response.end('world')
    })
  })
  const { request, response } = phases
  const route = { backend: service.backend, request: request ? [request] : [], response: response ? [response] : [] }
  const kind = listener === 'plain' ? 'http' : 'https'
  return Plane.start(t, [testEdge({ names: ['a.test'], kind, isEndpoint, routes: [route] })])
}

/** Sends raw bytes, and reads until the server ends the connection. */
async function talk(plane: Plane, listener: Listener, bytes: string, servername = 'a.test'): Promise<string> {
  const socket =
    listener === 'plain'
      ? connect({ port: plane.httpPort, host: '127.0.0.1' })
      : connectTls({
          port: plane.httpsPort,
          host: '127.0.0.1',
          servername,
          ca: caPem,
          checkServerIdentity: () => undefined,
        })
  await once(socket, listener === 'plain' ? 'connect' : 'secureConnect')
  socket.write(bytes)
  return text(socket)
}

function bodyOf(answer: string): string {
  return answer.slice(answer.indexOf('\r\n\r\n') + 4)
}

for (const listener of listeners) {
  describe(`on the ${listener} listener, a client of HTTP/1.0`, () => {
    for (const isEndpoint of [false, true]) {
      test(`is served by ${isEndpoint ? 'an endpoint' : 'an edge'}, whose service hears HTTP/1.1`, async (t) => {
        const plane = await start(t, listener, { isEndpoint })
        const asked = 'POST /a?b HTTP/1.0\r\nHost: a.test\r\nContent-Length: 4\r\n\r\nbody'
        const answer = await talk(plane, listener, asked)
        assert.match(answer, /^HTTP\/1\.1 200 OK\r\n/)
        assert.match(answer, /\r\nx-seen: POST \/a\?b 1\.1 a\.test body\r\n/i)
        assert.match(answer, /\r\nConnection: close\r\n/)
        assert.doesNotMatch(answer, /chunked|content-length/i)
        assert.equal(bodyOf(answer), 'hello world')
        const { isCut, status } = await plane.record()
        assert.deepEqual([isCut, status], [false, 200])
      })
    }

    const answers: Record<string, [phases: Served['phases'], status: number]> = {
      'the answer of a module': [{ request: () => ({ respond: { status: 418, headers: [], body: 'tea' } }) }, 418],
      'an error page': [{ request: () => ({ refuse: 'IP_REFUSED' }) }, 403],
      'an answer instead of that of the service': [
        { response: () => ({ respond: { status: 418, headers: [], body: 'tea' } }) },
        418,
      ],
    }
    for (const [name, [phases = {}, status]] of Object.entries(answers)) {
      test(`gets ${name} with its length, and another on the same connection when it asks for that`, async (t) => {
        const plane = await start(t, listener, { phases })
        const kept = 'GET / HTTP/1.0\r\nHost: a.test\r\nConnection: Keep-Alive\r\n\r\n'
        const answer = await talk(plane, listener, `${kept}GET / HTTP/1.0\r\nHost: a.test\r\n\r\n`)
        const heads = answer.match(/HTTP\/1\.1 .*?\r\n\r\n/gs) ?? []
        assert.equal(heads.length, 2)
        for (const [i, head] of heads.entries()) {
          assert.match(head, new RegExp(`^HTTP/1\\.1 ${status} `))
          assert.match(head, /\r\nContent-Length: [0-9]+\r\n/)
          assert.match(head, i === 0 ? /\r\nConnection: keep-alive\r\n/ : /\r\nConnection: close\r\n/)
          assert.doesNotMatch(head, /chunked/i)
        }
      })
    }

    test('gets an error page when nothing serves its name', async (t) => {
      const plane = await Plane.start(t, [])
      const answer = await talk(plane, listener, 'GET / HTTP/1.0\r\nHost: a.test\r\n\r\n')
      assert.match(answer, /^HTTP\/1\.1 404 .*\r\nConnection: close\r\n/s)
    })

    test('is refused with chunks', async (t) => {
      const plane = await start(t, listener)
      const chunks = 'POST / HTTP/1.0\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'
      assert.match(await talk(plane, listener, chunks), /^HTTP\/1\.1 400 .*\r\nConnection: close\r\n/s)
    })
  })
}

describe('a client of HTTP/1.0 that names no host', () => {
  test('is served by the name in its handshake', async (t) => {
    const plane = await start(t, 'tls')
    const answer = await talk(plane, 'tls', 'GET / HTTP/1.0\r\n\r\n')
    assert.match(answer, /^HTTP\/1\.1 200 .*x-seen: GET \/ 1\.1 a\.test/s)
  })

  test('is refused where nothing else tells the address', async (t) => {
    assert.match(await talk(await start(t, 'plain'), 'plain', 'GET / HTTP/1.0\r\n\r\n'), /^HTTP\/1\.1 400 /)
    assert.match(await talk(await start(t, 'tls'), 'tls', 'GET / HTTP/1.0\r\n\r\n', ''), /^HTTP\/1\.1 400 /)
  })
})
