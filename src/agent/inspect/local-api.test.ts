import assert from 'node:assert/strict'
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { before, describe, test } from 'node:test'
import { type TlsIdentity, tlsIdentity } from '../../../test/support/tls-identity.ts'
import { until } from '../../../test/support/until.ts'
import { type TestOwner, testInspector, testService } from '../testing/test-inspector.ts'

const close = 'Connection: close\r\n'

let identity: TlsIdentity
before(async () => {
  identity = await tlsIdentity()
})

const inspected = (owner: TestOwner) => testInspector(owner, identity)

describe('tunnels of the local API', () => {
  test('are listed and shown as the official agent does', async (t) => {
    const { ask, open } = await inspected(t)
    await open('web', { addr: 3000, schemes: ['http', 'https'] })
    await open('ssh', { addr: 22, proto: 'tcp' })
    const { status, json } = await ask('GET', '/api/tunnels')
    assert.equal(status, 200)
    assert.equal(json.uri, '/api/tunnels')
    assert.deepEqual(
      json.tunnels.map(({ name, uri, proto, config }: Record<string, unknown>) => [name, uri, proto, config]),
      [
        ['web', '/api/tunnels/web', 'https', { addr: 'http://localhost:3000', inspect: true }],
        ['web (http)', '/api/tunnels/web%20(http)', 'http', { addr: 'http://localhost:3000', inspect: true }],
        ['ssh', '/api/tunnels/ssh', 'tcp', { addr: 'localhost:22', inspect: false }],
      ],
    )
    const [web] = json.tunnels
    const figures = { count: 0, rate1: 0, rate5: 0, rate15: 0, p50: 0, p90: 0, p95: 0, p99: 0 }
    assert.deepEqual(web.metrics, { conns: { gauge: 0, ...figures }, http: figures })
    assert.match(web.public_url, /^https:\/\//)
    for (const path of ['/api/tunnels/web', '/api/tunnels/web/']) assert.deepEqual((await ask('GET', path)).json, web)
    assert.equal((await ask('GET', '/api/tunnels/web%20(http)')).json.proto, 'http')
    assert.equal((await ask('GET', '/api/tunnels/web+(http)')).status, 404)
    assert.deepEqual((await ask('GET', '/api/tunnels/nobody')).json, {
      status_code: 404,
      msg: 'Resource not found',
      details: { path: '/api/tunnels/nobody' },
    })
    assert.equal((await ask('GET', '/api/tunnels/%ff')).status, 404)
  })

  test('are started and stopped', async (t) => {
    const { ask, agent, inspector } = await inspected(t)
    const started = await ask('POST', '/api/tunnels', { body: { name: 'ssh', proto: 'tcp', addr: '22' } })
    assert.deepEqual([started.status, started.json.name, started.json.proto], [201, 'ssh', 'tcp'])
    assert.deepEqual(started.json.config, { addr: 'localhost:22', inspect: false })
    assert.ok(inspector.hasStarted('ssh'))
    const old = await ask('POST', '/api/tunnels', { body: { addr: 80, proto: 'http', bind_tls: 'both', auth: 'a:b' } })
    assert.deepEqual([old.status, old.json.name], [201, 'tunnel-1'])
    assert.deepEqual(
      [...agent.tunnels].map(({ plan }) => ('proto' in plan.asks ? plan.asks.proto : '')),
      ['tcp', 'https', 'http'],
    )
    for (const name of ['ssh', 'tunnel-1', 'tunnel-1%20(http)']) {
      const stopped = await ask('DELETE', `/api/tunnels/${name}`)
      assert.deepEqual([stopped.status, stopped.text], [204, ''])
    }
    assert.equal(agent.tunnels.size, 0)
    assert.ok(!inspector.hasStarted('ssh'))
    assert.equal((await ask('DELETE', '/api/tunnels/ssh')).status, 404)
  })

  for (const [name, body, err] of [
    ['no address', { name: 'x', proto: 'http' }, /`addr` is missing/],
    ['a key that is not known', { addr: 1, colour: 'red' }, /`colour` is not a known key/],
    ['a name that is taken', { addr: 1, name: 'web' }, /`name` is the name of another tunnel/],
    ['a name that is none', { addr: 1, name: '../x' }, /must be named with letters/],
    ['a file to read', { addr: 1, proto: 'tls', mutual_tls_cas: '/etc/passwd' }, /reads no files/],
    ['a policy in a file', { addr: 1, traffic_policy: '/etc/passwd' }, /reads no files/],
  ] as const) {
    test(`are refused with ${name}`, async (t) => {
      const { ask, agent, open } = await inspected(t)
      await open('web', { addr: 3000 })
      const { status, json } = await ask('POST', '/api/tunnels', { body })
      assert.deepEqual([status, json.error_code, json.msg], [400, 102, 'invalid tunnel configuration'])
      assert.match(json.details.err, err)
      assert.equal(agent.tunnels.size, 1)
    })
  }

  test('are not started when the server refuses them, and leave nothing behind', async (t) => {
    const { ask, agent, testServer } = await inspected(t)
    testServer.rules.bind = () => 'that name is taken\n\nERR_NGROK_334'
    const { status, json } = await ask('POST', '/api/tunnels', { body: { addr: 1, name: 'x' } })
    assert.deepEqual([status, json.error_code, json.msg], [502, 103, 'failed to start tunnel'])
    assert.match(json.details.err, /that name is taken/)
    assert.equal(agent.tunnels.size, 0)
  })

  test('count their connections and requests', async (t) => {
    const { ask, open, visit } = await inspected(t)
    const port = await testService(t, (_request, response) => void response.end('hi'))
    const { id } = await open('web', { addr: port })
    await visit(id, `GET / HTTP/1.1\r\nHost: x\r\n${close}\r\n`)
    const { conns, http } = await until('it is counted', async () => {
      const { metrics } = (await ask('GET', '/api/tunnels/web')).json
      return metrics.conns.gauge === 0 && metrics
    })
    assert.deepEqual([conns.count, http.count], [1, 1])
    assert.ok(conns.p50 > 0 && http.p99 > 0)
  })

  test('the agent says whether it is online', async (t) => {
    const { ask } = await inspected(t)
    const { json } = await ask('GET', '/api/status')
    assert.deepEqual([json.status, json.agent_version, json.uri], ['online', '1.2.3', '/api/status'])
  })
})

describe('requests of the local API', () => {
  test('are shown as the official agent does', async (t) => {
    const { ask, open, visit } = await inspected(t)
    const port = await testService(t, (request, response) => {
      request.resume().on('end', () => {
        response.setHeader('x-Seen', ['a', 'b'])
        response.writeHead(201).write('one')
        response.end('two')
      })
    })
    const { id } = await open('web', { addr: port })
    await visit(id, `POST /a?b=c HTTP/1.1\r\nhost: x.test\r\ncontent-length: 5\r\n${close}\r\nhello`)
    const { json } = await until('it is whole', async () => {
      const answer = await ask('GET', '/api/requests/http')
      return answer.json.requests[0]?.response && answer
    })
    assert.equal(json.uri, '/api/requests/http')
    const [seen] = json.requests
    assert.deepEqual(
      [seen.uri, seen.tunnel_name, seen.remote_addr],
      [`/api/requests/http/${seen.id}`, 'web', '192.0.2.7'],
    )
    assert.ok(Number.isInteger(seen.duration) && !Number.isNaN(Date.parse(seen.start)))
    const { raw, ...request } = seen.request
    assert.deepEqual(request, {
      method: 'POST',
      proto: 'HTTP/1.1',
      headers: { Host: ['x.test'], 'Content-Length': ['5'], Connection: ['close'] },
      uri: '/a?b=c',
    })
    assert.match(String(Buffer.from(raw, 'base64')), /^POST \/a\?b=c HTTP\/1\.1\r\n[\s\S]*\r\n\r\nhello$/)
    const { response } = seen
    assert.deepEqual([response.status, response.status_code, response.proto], ['201 Created', 201, 'HTTP/1.1'])
    assert.deepEqual(response.headers['X-Seen'], ['a', 'b'])
    assert.match(
      String(Buffer.from(response.raw, 'base64')),
      /^HTTP\/1\.1 201 Created\r\n[\s\S]*\r\n\r\n6\r\nonetwo\r\n0\r\n\r\n$/,
    )
    assert.deepEqual((await ask('GET', `/api/requests/http/${seen.id}`)).json, seen)
    for (const [query, count] of [
      ['?tunnel_name=web', 1],
      ['?tunnel_name=web%20(http)', 1],
      ['?tunnel_name=other', 0],
      ['?limit=1', 1],
    ] as const) {
      assert.equal((await ask('GET', `/api/requests/http${query}`)).json.requests.length, count, query)
    }
    assert.equal((await ask('GET', '/api/requests/http?limit=none')).status, 400)
    assert.equal((await ask('GET', '/api/requests/http/0000000000000001')).status, 404)
    assert.equal((await ask('DELETE', '/api/requests/http')).status, 204)
    assert.deepEqual((await ask('GET', '/api/requests/http')).json.requests, [])
  })

  test('are replayed, to the same tunnel or another', async (t) => {
    const { ask, open, visit } = await inspected(t)
    const got: string[] = []
    const serve = (name: string) =>
      testService(t, async (request, response) => {
        got.push(`${name} ${request.method} ${request.url} ${request.headers.host} ${String(await buffer(request))}`)
        response.end(name)
      })
    const { id } = await open('web', { addr: await serve('one') })
    await open('other', { addr: await serve('two') })
    await visit(
      id,
      `POST /x HTTP/1.1\r\nHost: x.test\r\nTransfer-Encoding: chunked\r\n${close}\r\n2\r\nhi\r\n0\r\n\r\n`,
    )
    const first = (await ask('GET', '/api/requests/http')).json.requests[0].id
    for (const body of [{ id: first }, { id: first, tunnel_name: 'other' }]) {
      assert.deepEqual([(await ask('POST', '/api/requests/http', { body })).status], [204])
    }
    assert.deepEqual(got, ['one POST /x x.test hi', 'one POST /x x.test hi', 'two POST /x x.test hi'])
    const { exchanges } = (await ask('GET', '/api/exchanges')).json
    assert.deepEqual(
      exchanges.map((each: Record<string, unknown>) => [each.tunnel_name, each.replay_of, each.status]),
      [
        ['other', first, 200],
        ['web', first, 200],
        ['web', null, 200],
      ],
    )
    for (const [body, status] of [
      [{}, 400],
      [{ id: 'none' }, 404],
      [{ id: first, tunnel_name: 'none' }, 404],
      [{ id: first, more: 1 }, 400],
    ] as const) {
      assert.equal((await ask('POST', '/api/requests/http', { body })).status, status, JSON.stringify(body))
    }
  })
})

describe('exchanges of the local API', () => {
  test('have heads and bodies, as text where they are text', async (t) => {
    const { ask, open, visit } = await inspected(t)
    const port = await testService(t, (_request, response) => void response.end(Buffer.from([0xff, 0x00, 0x80])))
    const { id } = await open('web', { addr: port })
    const body = '<b>h\u202eé</b>'
    const head = `POST /p HTTP/1.1\r\nHost: x.test:8443\r\nX-Odd: caf\xe9\r\nContent-Length: ${Buffer.byteLength(body)}\r\n`
    await visit(id, Buffer.concat([Buffer.from(`${head}${close}\r\n`, 'latin1'), Buffer.from(body)]))
    const [item] = (
      await until('it has ended', async () => {
        const { exchanges } = (await ask('GET', '/api/exchanges')).json
        return exchanges[0]?.is_open === false && { exchanges }
      })
    ).exchanges
    const { started_at, duration_ms, id: exchangeId, uri, ...rest } = item
    assert.ok(!Number.isNaN(Date.parse(started_at)) && Number.isInteger(duration_ms))
    assert.deepEqual(rest, {
      ...{ method: 'POST', host: 'x.test', path: '/p', status: 200, error_code: null, protocol: 'HTTP/1.1' },
      ...{ request_bytes: Buffer.byteLength(body), response_bytes: 3, scheme: 'https', client_ip: '192.0.2.7' },
      ...{ tunnel_name: 'web', is_cut: false, is_open: false, frame_count: 0, replay_of: null },
    })
    const { json: whole } = await ask('GET', uri)
    assert.equal(whole.id, exchangeId)
    assert.deepEqual(whole.request.headers[1], { name: 'X-Odd', value: 'café' })
    assert.deepEqual(whole.request.body, {
      size: body.length + 3,
      kept: body.length + 3,
      encoding: 'text',
      content: body,
      unpacked: null,
    })
    assert.deepEqual(whole.response.body, {
      ...{ size: 3, kept: 3, encoding: 'base64', content: '/wCA', unpacked: null },
    })
    assert.deepEqual(whole.frames, [])
  })

  test('are cut at a limit, even inside a character', async (t) => {
    const { ask, open, visit } = await inspected(t)
    const size = 3 * 1024 * 1024
    const port = await testService(t, (_request, response) => void response.end(`x${'é'.repeat(size / 2)}`))
    const { id } = await open('web', { addr: port })
    await visit(id, `GET / HTTP/1.1\r\nHost: x\r\n${close}\r\n`)
    const uri = (await ask('GET', '/api/exchanges')).json.exchanges[0].uri
    const { body } = (await ask('GET', uri)).json.response
    assert.deepEqual([body.size, body.kept, body.encoding], [size + 1, 1024 * 1024, 'text'])
    assert.equal(body.content, `x${'é'.repeat(512 * 1024 - 1)}`)
  })

  test('are replayed with changes', async (t) => {
    const { ask, open, visit } = await inspected(t)
    const got: unknown[] = []
    const port = await testService(t, async (request, response) => {
      const { host, 'content-length': length, 'x-new': more, 'x-old': old } = request.headers
      got.push([request.method, request.url, host, length, more, old, String(await buffer(request))])
      response.end('ok')
    })
    const { id } = await open('web', { addr: port })
    await visit(id, `POST /a HTTP/1.1\r\nHost: x.test\r\nX-Old: 1\r\nContent-Length: 2\r\n${close}\r\nhi`)
    const uri = (await ask('GET', '/api/exchanges')).json.exchanges[0].uri
    for (const body of [
      { method: 'PUT', path: '/b?c' },
      { body: 'longer' },
      { body: { encoding: 'base64', content: '' }, headers: [{ name: 'X-New', value: 'ü' }] },
    ]) {
      const { status, json } = await ask('POST', `${uri}/replay`, { body })
      assert.deepEqual([status, json.status, json.replay_of], [201, 200, uri.split('/').at(-1)])
    }
    assert.deepEqual(got.slice(1), [
      ['PUT', '/b?c', 'x.test', '2', undefined, '1', 'hi'],
      ['POST', '/a', 'x.test', '6', undefined, '1', 'longer'],
      ['POST', '/a', 'x.test', '0', Buffer.from('ü').toString('latin1'), undefined, ''],
    ])
  })

  test('are not replayed with values that would break out of their line', async (t) => {
    const { ask, open, visit } = await inspected(t)
    const port = await testService(t, (_request, response) => void response.end())
    const { id } = await open('web', { addr: port })
    await visit(id, `GET / HTTP/1.1\r\nHost: x\r\n${close}\r\n`)
    const { uri } = (await ask('GET', '/api/exchanges')).json.exchanges[0]
    for (const body of [
      { method: 'GET /x' },
      { method: '' },
      { path: 'x' },
      { path: '/a b' },
      { path: '/\r\nX: y' },
      { headers: [{ name: 'a b', value: '' }] },
      { headers: [{ name: 'a', value: 'b\r\nc: d' }] },
      { headers: [{ name: 'a' }] },
      { headers: { a: 'b' } },
      { headers: Array.from({ length: 201 }, () => ({ name: 'a', value: 'b' })) },
      { body: 5 },
      { body: { encoding: 'base64', content: '*' } },
      { unknown: 1 },
    ]) {
      assert.equal((await ask('POST', `${uri}/replay`, { body })).status, 400, JSON.stringify(body).slice(0, 80))
    }
    const upgrade = { headers: [{ name: 'Upgrade', value: 'websocket' }] }
    assert.equal((await ask('POST', `${uri}/replay`, { body: upgrade })).status, 409)
    assert.equal((await ask('POST', '/api/exchanges/none/replay', { body: {} })).status, 404)
  })

  test('say when their service is down, and so do their replays', async (t) => {
    const { ask, open, visit } = await inspected(t)
    const { id } = await open('web', { addr: '127.0.0.1:1' })
    await visit(id, 'GET /down HTTP/1.1\r\nHost: x\r\n\r\n')
    const [item] = (await ask('GET', '/api/exchanges')).json.exchanges
    assert.deepEqual([item.status, item.error_code, item.path], [null, 'ERR_UPSTREAM_UNREACHABLE', '/down'])
    const { json } = await ask('POST', `${item.uri}/replay`, { body: {} })
    assert.deepEqual([json.status, json.error_code], [null, 'ERR_UPSTREAM_UNREACHABLE'])
    assert.equal((await ask('GET', item.uri)).json.response, null)
  })

  test('are not recorded for tunnels without inspection', async (t) => {
    const { ask, open, visit } = await inspected(t)
    const port = await testService(t, (_request, response) => void response.end('hi'))
    const { id } = await open('web', { addr: port, inspect: false })
    assert.match(await visit(id, `GET / HTTP/1.1\r\nHost: x\r\n${close}\r\n`), /hi$/)
    assert.deepEqual((await ask('GET', '/api/exchanges')).json.exchanges, [])
    assert.equal((await ask('GET', '/api/tunnels')).json.tunnels[0].config.inspect, false)
  })
})

/** The events of a stream, one after the other. */
async function eventsOf(url: string) {
  const [response] = (await once(get(url, { agent: false }), 'response')) as [IncomingMessage]
  let text = ''
  response.on('data', (chunk: Buffer) => {
    text += chunk
  })
  return {
    response,
    // biome-ignore lint/suspicious/noExplicitAny: tests look into it
    events: (): { event: string; data: any }[] =>
      Array.from(text.matchAll(/^event: (\w+)\ndata: (.*)\n\n/gm), ([, event = '', data = '']) => ({
        event,
        data: JSON.parse(data),
      })),
  }
}

describe('streams of the local API', () => {
  test('send exchanges as they come and go', async (t) => {
    const { ask, open, visit, url } = await inspected(t)
    const port = await testService(t, (_request, response) => void response.end('hi'))
    const { id } = await open('web', { addr: port })
    const { events, response } = await eventsOf(`${url}/api/exchanges/stream`)
    assert.equal(response.headers['content-type'], 'text/event-stream')
    const [first] = await until('it follows', () => events().length > 0 && events())
    assert.deepEqual(first, { event: 'following', data: {} })
    await visit(id, `GET /one HTTP/1.1\r\nHost: x\r\n${close}\r\n`)
    const last = await until('it is told', () => events().find(({ data }) => data.is_open === false))
    assert.deepEqual([last.event, last.data.path, last.data.status], ['exchange', '/one', 200])
    await ask('DELETE', '/api/exchanges')
    await until('it is removed', () =>
      events().some(({ event, data }) => event === 'removed' && data.id === last.data.id),
    )
    response.destroy()
  })

  test('send events of a service as they come, and end with them', async (t) => {
    const { ask, open, visit, url } = await inspected(t)
    const more = Promise.withResolvers<void>()
    const port = await testService(t, async (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('data: one\n\n')
      await more.promise
      response.end('event: bye\ndata: two\n\n')
    })
    const { id } = await open('web', { addr: port })
    const visiting = visit(id, `GET /events HTTP/1.1\r\nHost: x\r\n${close}\r\n`)
    const item = await until('it is there', async () => (await ask('GET', '/api/exchanges')).json.exchanges[0])
    const { events, response } = await eventsOf(`${url}${item.uri}/stream`)
    const frames = () => events().filter(({ event }) => event === 'frame')
    await until('the first is told', () => frames().length === 1)
    more.resolve()
    await once(response, 'end')
    await visiting
    assert.deepEqual(
      frames().map(({ data }) => [data.number, data.from, data.type, data.event, data.content]),
      [
        [1, 'service', 'event', 'message', 'one'],
        [2, 'service', 'event', 'bye', 'two'],
      ],
    )
    assert.equal(events().at(-1)?.data.is_open, false)
    assert.equal((await ask('GET', item.uri)).json.frames.length, 2)
    assert.equal((await ask('GET', '/api/exchanges/none/stream')).status, 404)
  })
})

describe('the local API is closed to', () => {
  for (const [name, headers] of [
    ['a name that leads here', { host: 'evil.test:4040' }],
    ['a name that looks like ours', { host: 'localhost.evil.test' }],
    ['another address', { host: '192.0.2.1:4040' }],
    ['a page of another site', { origin: 'https://evil.test' }],
    ['a page without an origin', { origin: 'null' }],
    ['a page of another port', { origin: 'http://localhost:3000', host: 'localhost:4040' }],
    ['a request of another site', { 'sec-fetch-site': 'cross-site' }],
    ['a request of the same site', { 'sec-fetch-site': 'same-site' }],
  ] as const) {
    test(name, async (t) => {
      const { ask, agent } = await inspected(t)
      for (const [method, path] of [
        ['GET', '/'],
        ['GET', '/api/tunnels'],
        ['GET', '/api/exchanges/stream'],
        ['POST', '/api/tunnels'],
        ['DELETE', '/api/requests/http'],
      ] as const) {
        const body = method === 'POST' ? { body: { addr: 1, proto: 'tcp' } } : {}
        assert.equal((await ask(method, path, { headers, ...body })).status, 403, `${method} ${path}`)
      }
      assert.equal(agent.tunnels.size, 0)
    })
  }

  test('nobody on this machine', async (t) => {
    const { ask, url } = await inspected(t)
    const { port } = new URL(url)
    for (const headers of [
      { host: `localhost:${port}` },
      { host: '127.0.0.1' },
      { host: '[::1]:9' },
      { host: `localhost:${port}`, origin: `http://localhost:${port}`, 'sec-fetch-site': 'same-origin' },
      { 'sec-fetch-site': 'none' },
    ]) {
      assert.equal((await ask('GET', '/api/tunnels', { headers })).status, 200, JSON.stringify(headers))
    }
  })

  test('forms, which any page can send', async (t) => {
    const { ask } = await inspected(t)
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/jsonx']) {
      const headers = { 'content-type': type }
      assert.equal((await ask('POST', '/api/tunnels', { headers, body: '{"addr":1}' })).status, 415, type)
    }
  })
})

describe('the local API bounds', () => {
  for (const [name, body, status] of [
    ['bodies that are no JSON', '{', 400],
    ['bodies that are no object', '[]', 400],
    ['bodies that are deep', `{"a":${'['.repeat(100)}${']'.repeat(100)}}`, 400],
    ['bodies that are large', `{"a":"${'x'.repeat(5 * 1024 * 1024)}"}`, 413],
  ] as const) {
    test(name, async (t) => {
      const { ask } = await inspected(t)
      const answer = await ask('POST', '/api/tunnels', { body }).catch((error: NodeJS.ErrnoException) => {
        // The server need not read all of it.
        assert.equal(status, 413)
        assert.match(error.code ?? '', /^(EPIPE|ECONNRESET)$/)
        return { status }
      })
      assert.equal(answer.status, status)
    })
  }

  test('methods and paths', async (t) => {
    const { ask } = await inspected(t)
    const { status, headers } = await ask('PUT', '/api/tunnels', { body: {} })
    assert.deepEqual([status, headers.allow], [405, 'GET, POST'])
    for (const path of ['/nothing', '/api/none', '/api/tunnels/a/b', '//api/tunnels', '/../etc/passwd']) {
      assert.equal((await ask('GET', path)).status, 404, path)
    }
  })
})

test('a browser gets a page, which may not be framed and runs no scripts', async (t) => {
  const { ask } = await inspected(t)
  const { status, headers, text } = await ask('GET', '/')
  assert.deepEqual([status, headers['content-type']], [200, 'text/html; charset=utf-8'])
  assert.match(text, /href="\/api\/tunnels"/)
  assert.match(String(headers['content-security-policy']), /default-src 'none'; frame-ancestors 'none'/)
  for (const path of ['/', '/api/tunnels', '/none']) {
    const answer = await ask('GET', path)
    assert.equal(answer.headers['x-content-type-options'], 'nosniff')
    assert.equal(answer.headers['cross-origin-resource-policy'], 'same-origin')
    assert.equal(answer.headers['access-control-allow-origin'], undefined)
  }
  assert.equal((await ask('GET', '/api')).json.tunnels_uri, '/api/tunnels')
})
