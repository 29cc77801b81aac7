/** Headers between visitors and services: header rules, forwarding headers, hosts, compression. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { brotliDecompressSync, gunzipSync, inflateSync } from 'node:zlib'
import { type Recorder, recorder } from './edges/upstreams.ts'
import { versions } from './edges/visitor.ts'
import { type HttpsEdge, World } from './edges/world.ts'

let world: World
let service: Recorder
before(async () => {
  world = await World.start()
  service = await recorder(world)
})
after(() => world.stop())

for (const version of versions) {
  describe(`over HTTP/${version}`, () => {
    describe('request headers', () => {
      let edge: HttpsEdge
      before(async () => {
        edge = await world.httpsTo(service, {
          request_headers: {
            remove: ['FOO', 'X-Forwarded-Proto', 'x-gone'],
            add: {
              foo: 'b',
              bar: 'b',
              'X-Ip': '${conn.client_ip}',
              'x-mixed': '${.http.request.method} ${req.url.path}|${nobody.knows}|${unclosed',
              'x-version': '${http.request.version}',
              'x-tls': '${conn.tls.version}',
              'x-agent': '${req.user_agent}',
            },
          },
        })
      })

      test('are removed in any case, then added', async () => {
        await world.ask(edge.name, { version, headers: { Foo: ['a', 'aa'], bar: 'a', 'X-GONE': '1' } })
        assert.deepEqual(service.last.all('foo'), ['b'])
        assert.deepEqual(service.last.all('bar'), ['a', 'b'])
        assert.deepEqual(service.last.all('x-gone'), [])
        assert.deepEqual(service.last.all('x-forwarded-proto'), [], 'even headers that the edge adds')
      })

      test('are filled in from the request; unknown variables are empty', async () => {
        await world.ask(edge.name, { version, path: '/a?b', from: '127.0.0.7', headers: { 'user-agent': 'me' } })
        const { last } = service
        assert.equal(last.get('x-ip'), '127.0.0.7')
        assert.equal(last.get('x-mixed'), 'GET /a||${unclosed')
        assert.equal(last.get('x-version'), version === '2' ? 'HTTP/2.0' : 'HTTP/1.1')
        assert.equal(last.get('x-tls'), '1.3')
        assert.equal(last.get('x-agent'), 'me')
      })
    })

    test("an added Host replaces the visitor's, and redirects to it are rewritten to the name of the edge", async (t) => {
      const locations: Record<string, [sent: string, seen: string]> = {
        '/absolute': ['http://x.local/p?q#f', 'https://NAME/p?q#f'],
        '/secure': ['https://X.Local:443/p', 'https://NAME/p'],
        '/scheme-less': ['//x.local/p', '//NAME/p'],
        '/elsewhere': ['http://y.local/p', 'http://y.local/p'],
        '/deeper': ['http://x.local.evil/p', 'http://x.local.evil/p'],
        '/relative': ['/p', '/p'],
      }
      const redirects = await recorder(t, ({ url = '' }, response) => {
        response.writeHead(302, { location: locations[url]?.[0] ?? '' })
        response.end()
      })
      const { name } = await world.httpsTo(redirects, { request_headers: { add: { Host: 'x.local' } } })
      for (const [path, [, seen]] of Object.entries(locations)) {
        const { headers } = await world.ask(name, { version, path })
        assert.deepEqual(redirects.last.all('host'), ['x.local'])
        assert.equal(headers.location, seen.replace('NAME', name))
        assert.equal(redirects.last.get('x-forwarded-host'), name)
      }
    })

    test('forwarding headers identify the visitor to a service; of its own only addresses before ours are kept', async () => {
      const { name } = await world.httpsTo(service)
      await world.ask(name, { version, from: '127.0.0.2' })
      assert.deepEqual(service.last.all('x-forwarded-for'), ['127.0.0.2'])
      assert.deepEqual(service.last.all('x-forwarded-proto'), ['https'])
      assert.deepEqual(service.last.all('x-forwarded-host'), [name])
      assert.deepEqual(service.last.all('host'), [name])

      const headers = {
        'x-forwarded-for': ['1.1.1.1', '3.3.3.3'],
        'x-forwarded-proto': 'http',
        'x-forwarded-host': 'a',
      }
      await world.ask(name, { version, from: '127.0.0.2', headers })
      assert.deepEqual(service.last.all('x-forwarded-for'), ['1.1.1.1, 3.3.3.3, 127.0.0.2'])
      assert.deepEqual(service.last.all('x-forwarded-proto'), ['https'])
      assert.deepEqual(service.last.all('x-forwarded-host'), [name])
    })

    test('a visitor cannot forge headers of the edge, in any spelling', async () => {
      const { name } = await world.httpsTo(service)
      await world.ask(name, {
        version,
        headers: {
          'postern-mtls-subject-cn': 'admin',
          'Postern-Auth-User-Id': 'admin',
          'postern.auth.user.id': 'admin',
          postern_auth_user_id: 'admin',
          x_forwarded_for: '9.9.9.9',
          'x-forwarded_for': '9.9.9.9',
          'x-plain': 'kept',
          ...(version === '1.1' && {
            connection: 'x-named, keep-alive',
            'x-named': '1',
            'proxy-connection': 'keep-alive',
            'keep-alive': 'timeout=5',
          }),
          te: 'trailers',
        },
      })
      const { last } = service
      assert.deepEqual(
        last.names.filter((each) => /postern|_|x-named|^te$|keep-alive|proxy/.test(each)),
        [],
      )
      assert.equal(last.get('x-plain'), 'kept')
      assert.deepEqual(last.all('x-forwarded-for'), ['127.0.0.1'])
    })

    describe('response headers', () => {
      test('are removed and added on answers of services and fixed answers, but not on error pages', async (t) => {
        const talks = await recorder(t, (_, response) => {
          response.setHeader('x-gone', '1')
          response.setHeader('set-cookie', ['a=1', 'b=2'])
          response.end('said')
        })
        const response_headers = {
          remove: ['X-Gone'],
          add: { 'x-status': '${http.response.status_code}', 'x-id': '${http.request_id}' },
        }
        const edge = await world.httpsEdge({
          routes: [
            { match: '/', backend: await world.toAddress(talks), response_headers },
            {
              match: '/fixed',
              backend: await world.toBackend('http_response', {
                status_code: 418,
                body: 'short',
                headers: { 'X-Gone': '1', 'x-kept': '2' },
              }),
              response_headers,
            },
            { match: '/none', response_headers },
          ],
        })
        const said = await world.ask(edge.name, { version })
        assert.equal(said.headers['x-gone'], undefined)
        assert.equal(said.headers['x-status'], '200')
        assert.match(String(said.headers['x-id']), /^[0-9a-f]{32}$/)
        assert.deepEqual(said.headers['set-cookie'], ['a=1', 'b=2'])

        const fixed = await world.ask(edge.name, { version, path: '/fixed' })
        assert.deepEqual([fixed.status, fixed.text], [418, 'short'])
        assert.deepEqual([fixed.headers['x-gone'], fixed.headers['x-kept']], [undefined, '2'])
        assert.equal(fixed.headers['x-status'], '418')
        assert.equal(fixed.headers['content-type'], 'text/plain; charset=utf-8')
        assert.equal(fixed.headers['content-length'], '5')
        const head = await world.ask(edge.name, { version, path: '/fixed', method: 'HEAD' })
        assert.deepEqual([head.status, head.headers['content-length'], head.body.length], [418, '5', 0])

        const page = await world.ask(edge.name, { version, path: '/none' })
        assert.deepEqual([page.code, page.headers['x-status']], ['ERR_NO_BACKEND', undefined])
      })
    })

    describe('compression', () => {
      const LONG = 'a long text that gets smaller, '.repeat(2000)
      let edge: HttpsEdge
      before(async () => {
        const sends = await recorder(world, ({ url = '', method }, response) => {
          response.setHeader('content-type', 'text/plain')
          response.setHeader('etag', '"1"')
          if (url === '/coded') response.setHeader('content-encoding', 'identity-ish')
          if (url === '/kept') response.setHeader('cache-control', 'public, no-transform')
          if (url === '/small') response.setHeader('content-length', '5')
          if (url === '/empty') response.statusCode = 204
          if (url === '/long') response.setHeader('content-length', LONG.length)
          if (url === '/part') {
            response.statusCode = 206
            response.setHeader('content-range', `bytes 0-${LONG.length - 1}/${LONG.length}`)
          }
          response.end(url === '/empty' || method === 'HEAD' ? '' : url === '/small' ? 'small' : LONG)
        })
        edge = await world.httpsTo(sends, { compression: {} })
      })

      const decode = { gzip: gunzipSync, br: brotliDecompressSync, deflate: inflateSync } as const
      const asked: readonly [accept: string, coding: keyof typeof decode | undefined][] = [
        ['gzip', 'gzip'],
        ['deflate, gzip;q=0.5', 'deflate'],
        ['br;q=1, gzip;q=0.9', 'br'],
        ['gzip;q=0', undefined],
        ['zstd', undefined],
        ['', undefined],
      ]
      for (const [accept, coding] of asked) {
        for (const path of ['/long', '/chunked']) {
          test(`of ${path} for a visitor that accepts '${accept}' is ${coding ?? 'none'}`, async () => {
            const headers = accept === '' ? {} : { 'accept-encoding': accept }
            const answer = await world.ask(edge.name, { version, path, headers })
            assert.equal(answer.headers['content-encoding'], coding)
            assert.match(String(answer.headers.vary), /accept-encoding/i)
            const text = coding ? decode[coding](answer.body).toString() : answer.text
            assert.equal(text, LONG)
            if (!coding) return
            assert.ok(answer.body.length < LONG.length / 10)
            assert.equal(answer.headers['content-length'], undefined)
            assert.equal(answer.headers.etag, 'W/"1"')
          })
        }
      }

      test('also applies to a small body', async () => {
        const answer = await world.ask(edge.name, { version, path: '/small', headers: { 'accept-encoding': 'gzip' } })
        assert.equal(answer.headers['content-encoding'], 'gzip')
        assert.equal(gunzipSync(answer.body).toString(), 'small')
      })

      for (const path of ['/coded', '/kept', '/empty', '/part']) {
        test(`leaves ${path} as it is`, async () => {
          const answer = await world.ask(edge.name, { version, path, headers: { 'accept-encoding': 'gzip' } })
          assert.notEqual(answer.headers['content-encoding'], 'gzip')
          assert.equal(answer.headers.etag, '"1"')
          assert.equal(answer.text, path === '/empty' ? '' : LONG)
        })
      }

      test('leaves the answer to HEAD as it is', async () => {
        const about = { version, path: '/long', method: 'HEAD', headers: { 'accept-encoding': 'gzip' } }
        const answer = await world.ask(edge.name, about)
        assert.deepEqual([answer.status, answer.body.length], [200, 0])
        assert.equal(answer.headers['content-encoding'], undefined)
      })
    })
  })
}
