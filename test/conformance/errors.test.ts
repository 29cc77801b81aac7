/** Every failure has the same form of body, without secrets and internals (D7, Errors). */
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { describe, test } from 'node:test'
import type { Sending } from '../support/api-client.ts'
import { head, type RawAnswer, RawConnection } from '../support/raw-http.ts'
import { assertEnvelope } from './envelope.ts'
import { eachTarget, type Target, uniqueName } from './target.ts'

const MIB = 1024 * 1024

eachTarget((target) => {
  describe('bodies', () => {
    const json = (text: string): Sending => ({ body: text })
    const typed = (type: string, body = '{}'): Sending => ({ body, headers: { 'content-type': type } })
    const cases: readonly [what: string, sending: Sending, status: number][] = [
      ['no body', {}, 201],
      ['an empty body with a JSON type', { headers: { 'content-type': 'application/json' } }, 201],
      ['an empty object', json('{}'), 201],
      ['blanks around', json(' \r\n\t{} \n'), 201],
      ['a charset', typed('application/json; charset=utf-8'), 201],
      ['a quoted charset', typed('Application/JSON;charset="UTF-8"'), 201],
      ['a body of exactly 1 MiB', json(`{}${' '.repeat(MIB - 2)}`), 201],
      ['one byte more', json(`{}${' '.repeat(MIB - 1)}`), 413],
      ['text', typed('text/plain'), 415],
      ['a form', typed('application/x-www-form-urlencoded', 'description=x'), 415],
      ['another JSON', typed('application/problem+json'), 415],
      ['a type that begins like JSON', typed('application/jsonp'), 415],
      ['several parts', typed('multipart/form-data; boundary=x'), 415],
      ['an invalid type', typed('nonsense'), 415],
      ['another charset', typed('application/json; charset=latin1'), 415],
      ['UTF-16', typed('application/json; charset=utf-16'), 415],
      ['blanks alone', json('  \n '), 400],
      ['half an object', json('{"description":'), 400],
      ['something after the object', json('{} {}'), 400],
      ['single quotes', json("{'description':'x'}"), 400],
      ['a comment', json('{/* x */}'), 400],
      ['a trailing comma', json('{"description":"x",}'), 400],
      ['NaN', json('{"description":NaN}'), 400],
      ['an array', json('[]'), 400],
      ['a string', json('"description"'), 400],
      ['a number', json('1'), 400],
      ['null', json('null'), 400],
      ['a BOM', json('\ufeff{}'), 400],
      ['a duplicate key', json('{"description":"a","description":"b"}'), 400],
      ['a duplicate key in disguise', json('{"description":"a","descr\\u0069ption":"b"}'), 400],
      ['a duplicate key inside', json('{"metadata":{"a":1,"a":2}}'), 400],
      ['__proto__', json('{"__proto__":{"description":"x"}}'), 400],
      ['__proto__ in disguise', json('{"__pr\\u006fto__":{}}'), 400],
      ['constructor', json('{"constructor":{}}'), 400],
      ['a NUL in a string', json('{"description":"a\\u0000b"}'), 400],
      ['a raw NUL', json('{"description":"a\0b"}'), 400],
      ['a raw line break in a string', json('{"description":"a\nb"}'), 400],
      ['half a surrogate pair', json('{"description":"\\ud800"}'), 400],
      ['ill-formed UTF-8', { body: Buffer.from([...Buffer.from('{"description":"'), 0xc3, 0x28, 0x22, 0x7d]) }, 400],
      ['overlong UTF-8', { body: Buffer.from([...Buffer.from('{"description":"'), 0xc0, 0xaf, 0x22, 0x7d]) }, 400],
      ['an unknown field', json('{"descripton":"x"}'), 400],
      ['a wrong type', json('{"description":1}'), 400],
      ['33 levels', json(`{"metadata":${'['.repeat(32)}${']'.repeat(32)}}`), 400],
      ['a hundred thousand levels', json('['.repeat(100_000)), 400],
    ]
    for (const [what, sending, status] of cases) {
      // Refused before the store is used, so one store is enough.
      if (target.name === 'postgres' && status >= 400) continue
      test(`${what} is ${status}`, async () => {
        const answer = await target.api.send('POST', '/ip_policies', sending)
        if (status < 400) assert.equal(answer.status, status, answer.text)
        else assertEnvelope(answer, status)
      })
    }

    if (target.name === 'postgres') return

    test('32 levels are not too deep', async () => {
      const deep = (levels: number) => `{"metadata":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`
      const [fits, over] = [deep(32), deep(33)].map((body) => target.api.send('POST', '/ip_policies', { body }))
      assert.doesNotMatch((await fits)?.body.msg, /deep|nest/, 'refused for its type alone')
      assert.match((await over)?.body.msg, /32/)
    })

    test('a refused request stores nothing', async () => {
      const { id, description } = await target.api.create('/ip_policies', { description: 'before' })
      for (const [, sending, status] of cases) {
        if (status < 400) continue
        assertEnvelope(await target.api.send('PATCH', `/ip_policies/${id}`, sending), status)
      }
      assert.equal((await target.api.get(`/ip_policies/${id}`)).description, description)
    })

    test('no message repeats what was sent', async () => {
      const secret = 'hush-7f3a9c'
      for (const body of [
        `{"description":"${secret}`,
        `${secret}`,
        `{"a":${secret}}`,
        `{"description":["${secret}"]}`,
      ]) {
        const answer = await target.api.send('POST', '/ip_policies', { body })
        assertEnvelope(answer, 400)
        assert.ok(!answer.text.includes(secret), answer.text)
      }
    })
  })

  describe('details name the field at fault', () => {
    const cases: readonly [path: string, body: unknown, field: string][] = [
      ['/edges/https', { hostports: ['a.example.com:1'] }, 'hostports[0]'],
      ['/edges/https', { hostports: [uniqueName(), '192.0.2.1:443'] }, 'hostports[1]'],
      ['/edges/tls', { hostports: ['no port'] }, 'hostports[0]'],
      ['/edges/tcp', { hostports: ['*.example.com:20000'] }, 'hostports[0]'],
      ['/edges/tcp', { hostports: ['a.example.com:1'] }, 'hostports[0]'],
      ['/reserved_domains', { domain: '192.0.2.1' }, 'domain'],
      ['/reserved_domains', { domain: 'a b' }, 'domain'],
      ['/backends/static', { address: '*.example.com:80' }, 'address'],
      ['/api_keys', { owner_id: 'usr_nobody' }, 'owner_id'],
      ['/credentials', { acl: ['*', 'nonsense'] }, 'acl[1]'],
      ['/ssh_credentials', { public_key: 'nonsense' }, 'public_key'],
      ['/certificate_authorities', { ca_pem: 'nonsense' }, 'ca_pem'],
      ['/tls_certificates', { certificate_pem: 'nonsense', private_key_pem: 'nonsense' }, 'certificate_pem'],
      ['/ssh_certificate_authorities', { private_key_type: 'ed25519', key_size: 2048 }, 'key_size'],
      ['/captures', { edge_id: 'edghts_nobody' }, 'edge_id'],
    ]
    for (const [path, body, field] of cases) {
      // Refused before the store is used, but for ids that it does not have.
      if (target.name === 'postgres' && !/_id$/.test(field)) continue
      test(`${field} of ${path}, ${JSON.stringify(body)}`, async () => {
        const answer = await target.api.send('POST', path, { body })
        assertEnvelope(answer, 400)
        assert.equal(answer.body.details.field, field, answer.text)
      })
    }

    test('also for a taken name', async () => {
      const name = uniqueName()
      const { id } = await target.api.create('/edges/https', { hostports: [name] })
      const domain = name.replace(':443', '')
      await target.api.create('/reserved_domains', { domain })
      await target.api.create(`/edges/https/${id}/routes`, { match_type: 'path_prefix', match: '/' })
      for (const [path, body, field] of [
        ['/edges/tls', { hostports: [uniqueName(), name] }, 'hostports[1]'],
        ['/reserved_domains', { domain }, 'domain'],
        [`/edges/https/${id}/routes`, { match_type: 'path_prefix', match: '/' }, 'match'],
      ] as const) {
        const answer = await target.api.send('POST', path, { body })
        assertEnvelope(answer, 409)
        assert.equal(answer.body.details.field, field, answer.text)
      }
    })
  })

  describe('on the wire', () => {
    // Refused before the store is used, so one store is enough.
    if (target.name === 'postgres') return
    const chunk = (size: number) => `${size.toString(16)}\r\n${' '.repeat(size)}\r\n`
    const post = (...lines: string[]) => ['POST /ip_policies HTTP/1.1', 'Content-Type: application/json', ...lines]
    type Wire = (common: readonly string[]) => string
    const cases: readonly [what: string, bytes: Wire, status: number][] = [
      ['a Content-Length that is too large', (c) => head([...post(`Content-Length: ${MIB + 1}`), ...c]), 413],
      [
        'chunks beyond the limit',
        (c) => head([...post('Transfer-Encoding: chunked'), ...c]) + chunk(65_536).repeat(17),
        413,
      ],
      ['no HTTP', () => 'GARBAGE\r\n\r\n', 400],
      ['TLS', () => '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 400],
      ['an unknown method', (c) => head(['BREW /ip_policies HTTP/1.1', ...c]), 400],
      ['another version of HTTP', (c) => head(['GET /ip_policies HTTP/9.9', ...c]), 400],
      ['a path without a slash', (c) => head(['GET ip_policies HTTP/1.1', ...c]), 400],
      ['a header without a colon', (c) => head(['GET /ip_policies HTTP/1.1', ...c, 'nonsense']), 400],
      ['a space before the colon', (c) => head(['GET /ip_policies HTTP/1.1', ...c, 'X-A : b']), 400],
      ['a bare control character', (c) => head(['GET /ip_policies HTTP/1.1', ...c, 'X-A: \x01']), 400],
      ['a header of 100 KB', (c) => head(['GET /ip_policies HTTP/1.1', ...c, `X-A: ${'a'.repeat(100_000)}`]), 431],
      ['a path of 100 KB', (c) => head([`GET /${'a'.repeat(100_000)} HTTP/1.1`, ...c]), 431],
      ['an invalid length', (c) => head([...post('Content-Length: x'), ...c]), 400],
      ['two lengths', (c) => head([...post('Content-Length: 2', 'Content-Length: 3'), ...c]), 400],
      [
        'a length and chunks',
        (c) => `${head([...post('Content-Length: 2', 'Transfer-Encoding: chunked'), ...c])}0\r\n\r\n`,
        400,
      ],
      ['an unknown coding', (c) => head([...post('Transfer-Encoding: gzip'), ...c]), 400],
      ['a bad chunk size', (c) => `${head([...post('Transfer-Encoding: chunked'), ...c])}zz\r\n{}\r\n0\r\n\r\n`, 400],
      [
        'a chunk that is too long',
        (c) => `${head([...post('Transfer-Encoding: chunked'), ...c])}1\r\n{}\r\n0\r\n\r\n`,
        400,
      ],
    ]
    for (const [what, bytes, status] of cases) {
      test(`${what} is ${status} with the usual error body, and nothing is stored`, async () => {
        const before = await newest(target)
        assertEnvelope(await onWire(target, bytes), status)
        assert.equal(await newest(target), before)
      })
    }

    test('a client that sends all of a body that is too large before it reads gets the refusal, and a closed connection', async () => {
      const size = 4 * MIB
      const lines = await commonLines(target)
      for (const body of [
        `${head([...post(`Content-Length: ${size}`), ...lines])}${' '.repeat(size)}`,
        `${head([...post('Transfer-Encoding: chunked'), ...lines])}${chunk(size)}0\r\n\r\n`,
      ]) {
        const before = await newest(target)
        // Behind it stands a request that is not to be served, since its answer could not be sent.
        const { text, unsent } = await sendThenRead(
          target.url,
          `${body}${head(['POST /ip_policies HTTP/1.1', ...lines])}`,
        )
        assert.equal(unsent, 0)
        assert.match(text, /^HTTP\/1\.1 413 .*\r\nconnection: close\r\n.*ERR_BODY_TOO_LARGE[^\n]*$/is)
        assert.equal(await newest(target), before)
      }
    })

    test('a body without an end is not read for ever', async () => {
      const lines = await commonLines(target)
      const { hostname, port } = new URL(target.url)
      const socket = connect({ host: hostname, port: Number(port) }).on('error', () => {})
      socket.resume()
      let sent = 0
      const more = () => {
        while (!socket.destroyed && socket.write(chunk(65_536))) sent += 65_536
      }
      socket.on('drain', more)
      socket.write(head([...post('Transfer-Encoding: chunked'), ...lines]))
      more()
      await new Promise((resolve) => socket.once('close', resolve))
      assert.ok(sent > 2 * MIB && sent < 64 * MIB, `${sent} bytes`)
    })

    test('a valid chunked body is accepted', async () => {
      const answer = await onWire(
        target,
        (c) => `${head([...post('Transfer-Encoding: chunked'), ...c])}1\r\n{\r\n1\r\n}\r\n0\r\n\r\n`,
      )
      assert.equal(answer.status, 201, answer.text)
    })

    test('an unknown expectation is ignored', async () => {
      const answer = await onWire(target, (c) => head(['GET /ip_policies HTTP/1.1', ...c, 'Expect: wonders']))
      assert.equal(answer.status, 200, answer.text)
    })

    test('a body that waits for 100 Continue is accepted', async () => {
      const answer = await onWire(target, (c) => head([...post('Content-Length: 2', 'Expect: 100-continue'), ...c]))
      assert.equal(answer.status, 100)
    })
  })

  describe('addresses', () => {
    const unknown = '1'.repeat(27)
    const cases: readonly [method: string, path: string, status: number, code: string][] = [
      ['GET', '/', 404, 'ERR_ROUTE_NOT_FOUND'],
      ['GET', '/nowhere', 404, 'ERR_ROUTE_NOT_FOUND'],
      ['POST', '/nowhere', 404, 'ERR_ROUTE_NOT_FOUND'],
      ['GET', '/edges', 404, 'ERR_ROUTE_NOT_FOUND'],
      ['GET', '/%zz', 404, 'ERR_ROUTE_NOT_FOUND'],
      ['GET', '/%00', 404, 'ERR_ROUTE_NOT_FOUND'],
      ['GET', '/api_keys/%ff', 404, 'ERR_ROUTE_NOT_FOUND'],
      ['GET', '/constructor', 404, 'ERR_ROUTE_NOT_FOUND'],
      ['GET', `/edges/tcp/edgtcp_${unknown}/nonsense`, 404, 'ERR_ROUTE_NOT_FOUND'],
      ['GET', `/edges/tcp/edgtcp_${unknown}/oidc`, 404, 'ERR_ROUTE_NOT_FOUND'],
      ['PUT', '/api_keys', 405, 'ERR_METHOD_NOT_ALLOWED'],
      ['GET', `/edges/tcp/edgtcp_${unknown}`, 404, 'ERR_NOT_FOUND'],
      ['PATCH', `/edges/tcp/edgtcp_${unknown}`, 404, 'ERR_NOT_FOUND'],
      ['DELETE', `/edges/tcp/edgtcp_${unknown}`, 404, 'ERR_NOT_FOUND'],
      ['GET', `/edges/tcp/edgtcp_${unknown}/backend`, 404, 'ERR_NOT_FOUND'],
      ['DELETE', `/edges/tcp/edgtcp_${unknown}/backend`, 404, 'ERR_NOT_FOUND'],
      ['GET', '/api_keys?limit=0', 400, 'ERR_BAD_LIMIT'],
    ]
    for (const [method, path, status, code] of cases) {
      if (target.name === 'postgres' && code !== 'ERR_NOT_FOUND') continue
      test(`${method} ${path} is ${code}`, async () => {
        assertEnvelope(await target.api.send(method, path), status, code)
      })
    }

    test('every operation has its own id, in successful answers too', async () => {
      const answers = [
        await target.api.send('GET', '/tunnels'),
        await target.api.send('GET', '/tunnels'),
        await target.api.send('POST', '/ip_policies', { body: {} }),
        await target.api.send('GET', '/nowhere'),
      ]
      const ids = answers.map(({ headers }) => headers.get('service-operation-id') ?? '')
      for (const id of ids) assert.match(id, /^op_[0-9A-Za-z]{27}$/)
      assert.equal(new Set(ids).size, ids.length)
    })
  })
})

async function newest(target: Target): Promise<string | undefined> {
  return (await target.api.get('/ip_policies?limit=1')).ip_policies[0]?.id
}

/** The lines that every good request has. */
async function commonLines(target: Target): Promise<string[]> {
  const { token } = await target.api.create('/api_keys')
  return [`Host: ${new URL(target.url).host}`, `Authorization: Bearer ${token}`, 'Service-Version: 2']
}

/** Reads nothing until everything is sent, as many clients do; then to the end of the connection. */
async function sendThenRead(url: string, bytes: string): Promise<{ text: string; unsent: number }> {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port) }).pause()
  const text: Buffer[] = []
  await new Promise<void>((resolve, reject) => socket.on('error', reject).write(bytes, () => resolve()))
  const unsent = socket.writableLength
  for await (const chunk of socket) text.push(chunk as Buffer)
  return { text: Buffer.concat(text).toString('latin1'), unsent }
}

/** Sends what `bytes` makes of these lines. */
async function onWire(target: Target, bytes: (common: readonly string[]) => string): Promise<RawAnswer> {
  const common = await commonLines(target)
  const connection = await RawConnection.open(target.url)
  try {
    return await connection.exchange(Buffer.from(bytes(common), 'latin1'))
  } finally {
    connection.close()
  }
}
