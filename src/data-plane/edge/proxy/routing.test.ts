import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, test } from 'node:test'
import type { VisitorErrorCode } from '../../../model/visitor-errors.ts'
import { ask, askOver, askPlain, openHttp2, versions } from '../testing/http-visitor.ts'
import {
  backendOf,
  caPem,
  closingTarget,
  httpService,
  offlineTarget,
  Plane,
  type TestEdge,
  testEdge,
} from '../testing/test-http-plane.ts'

for (const version of versions) {
  describe(`over HTTP/${version}, a request`, () => {
    test('finds its route: the exact path, else the longest prefix', async (t) => {
      const service = await httpService(t, (_request, response) => response.end())
      const seen: string[] = []
      const routes = [{ match: '/' }, { match: '/api' }, { match: '/api/x', isExact: true }, { match: '/secret' }].map(
        (route) => ({
          ...route,
          backend: service.backend,
          request: [() => void seen.push(route.match)],
        }),
      )
      const plane = await Plane.start(t, [testEdge({ names: ['a.test'], routes })])
      const cases: [path: string, route: string][] = [
        ['/api/x', '/api/x'],
        ['/api/x/', '/api'],
        ['/apiary', '/api'],
        ['/z', '/'],
        ['/api/x?q=1', '/api/x'],
        ['/open/../a', '/'],
        ['/secret/%2e%2e%2fsecret/a', '/secret'],
        ['/secret//a;b/c\\', '/secret'],
        ['/secret/caf%C3%A9', '/secret'],
      ]
      for (const [path, route] of cases) {
        assert.equal((await ask(t, plane, version, { path })).status, 200)
        assert.equal(seen.pop(), route, path)
      }
    })

    test('is refused when its path could lead to another route', async (t) => {
      const service = await httpService(t, (_request, response) => response.end())
      const routes = [{ match: '/' }, { match: '/secret' }, { match: '/only', isExact: true }]
      const plane = await Plane.start(t, [
        testEdge({ names: ['a.test'], routes: routes.map((route) => ({ ...route, backend: service.backend })) }),
        testEdge({ names: ['b.test'], routes: [{ match: '/secret', backend: service.backend }] }),
        testEdge({ names: ['c.test'], routes: [{ readsPath: true, backend: service.backend }] }),
      ])
      const cases: [host: string, path: string][] = [
        ['a.test', '/open/../secret/a'],
        ['a.test', '/open/%2e%2e/secret/a'],
        ['a.test', '/open/..%2fsecret'],
        ['a.test', '/%73ecret'],
        ['a.test', '/secret/..'],
        ['a.test', '//secret'],
        ['a.test', '/only;x'],
        ['a.test', '/only%2f..%2fonly'],
        // One reading leads to a route, and the others to none.
        ['b.test', '/open/../secret'],
        // A module decides by the path.
        ['c.test', '/a%2fb'],
        ['c.test', '/a;b'],
      ]
      for (const [host, path] of cases) {
        const answer = await ask(t, plane, version, { host, path })
        assert.deepEqual([path, answer.status, answer.headers['postern-error-code']], [path, 400, 'ERR_AMBIGUOUS_PATH'])
      }
      assert.equal(service.dials, 0)
      assert.equal((await ask(t, plane, version, { host: 'c.test', path: '/a%20b' })).status, 200)
    })

    test('shows modules the one reading of its path, and fails when there are several', async (t) => {
      const service = await httpService(t, (_request, response) => response.end())
      const seen: string[] = []
      const route = { backend: service.backend, request: [({ path }: { path: string }) => void seen.push(path)] }
      const plane = await Plane.start(t, [testEdge({ names: ['a.test'], routes: [route] })])
      for (const path of ['/a?b', '/caf%C3%A9%20', '/.well-known'])
        assert.equal((await ask(t, plane, version, { path })).status, 200)
      assert.deepEqual(seen, ['/a', '/café ', '/.well-known'])
      // This module should have declared that it reads the path.
      assert.equal((await ask(t, plane, version, { path: '/a%2fb' })).status, 500)
      assert.equal(seen.length, 3)
    })

    test('goes upstream with the target as it was sent', async (t) => {
      const service = await httpService(t, (request, response) => response.end(request.url))
      const plane = await Plane.start(t, [testEdge({ names: ['a.test'], routes: [{ backend: service.backend }] })])
      for (const path of ['/a/../b?c=%2F&d', '/%61//b', '/a?', '/?a=1?b=2'])
        assert.equal((await ask(t, plane, version, { path })).text, path)
    })

    test('gets the error that says what is missing', async (t) => {
      const module = { request: [() => ({ refuse: 'IP_REFUSED' as const })] }
      const plane = await Plane.start(t, [
        testEdge({
          names: ['a.test'],
          routes: [
            { match: '/none' },
            { match: '/guarded', ...module },
            { match: '/broken', broken: 'module x: it cannot be compiled', backend: backendOf() },
            { match: '/empty', backend: backendOf() },
            { match: '/offline', backend: backendOf(offlineTarget()) },
            { match: '/busy', backend: backendOf(offlineTarget('busy'), offlineTarget()) },
            { match: '/refused', backend: backendOf(offlineTarget('refused')) },
            { match: '/late', backend: backendOf(offlineTarget('timeout')) },
          ],
        }),
        testEdge({ names: ['ruined.test'], broken: 'module mutual_tls: no authority', routes: [{ match: '/' }] }),
        testEdge({
          names: ['agent.test'],
          isEndpoint: true,
          routes: [
            { match: '/gone', backend: backendOf(offlineTarget()) },
            { match: '/empty', backend: backendOf() },
          ],
        }),
      ])
      const cases: [host: string, path: string, status: number, code: VisitorErrorCode][] = [
        ['a.test', '/', 404, 'NO_ROUTE'],
        ['a.test', '/none', 503, 'NO_BACKEND'],
        ['a.test', '/guarded', 403, 'IP_REFUSED'],
        ['a.test', '/broken', 503, 'MODULE_UNAVAILABLE'],
        ['a.test', '/empty', 503, 'BACKEND_OFFLINE'],
        ['a.test', '/offline', 503, 'BACKEND_OFFLINE'],
        ['a.test', '/busy', 503, 'BACKEND_BUSY'],
        ['a.test', '/refused', 502, 'UPSTREAM_UNREACHABLE'],
        ['a.test', '/late', 504, 'UPSTREAM_TIMEOUT'],
        ['a.test', '/%00', 400, 'BAD_VISITOR_REQUEST'],
        ['a.test', '/%zz', 400, 'BAD_VISITOR_REQUEST'],
        ['a.test', '/a\\b', 404, 'NO_ROUTE'],
        ['ruined.test', '/', 503, 'MODULE_UNAVAILABLE'],
        ['agent.test', '/gone', 404, 'ENDPOINT_OFFLINE'],
        ['agent.test', '/empty', 404, 'ENDPOINT_OFFLINE'],
        ['nobody.test', '/', 404, 'ENDPOINT_OFFLINE'],
      ]
      for (const [host, path, status, code] of cases) {
        const answer = await ask(t, plane, version, { host, path })
        assert.equal(answer.status, status, path)
        assert.equal(answer.headers['postern-error-code'], `ERR_${code}`, path)
        assert.equal(answer.headers['cache-control'], 'no-store')
        assert.match(answer.text, new RegExp(`ERR_${code}`))
      }
    })

    test('goes to the next target when one cannot be dialled, up to a fixed one', async (t) => {
      const service = await httpService(t, (_request, response) => response.writeHead(500).end('mine'))
      const sorry = {
        kind: 'fixed' as const,
        status: 503,
        headers: [['content-type', 'text/plain']] as const,
        body: Buffer.from('sorry'),
      }
      const routes = [
        { match: '/live', backend: backendOf(offlineTarget(), service.target, sorry) },
        { match: '/gone', backend: backendOf(closingTarget(), service.target) },
        { match: '/closed', backend: backendOf(closingTarget()) },
        { match: '/dead', backend: backendOf(offlineTarget('refused'), sorry, service.target) },
      ]
      const plane = await Plane.start(t, [testEdge({ names: ['a.test'], routes })])
      const live = await ask(t, plane, version, { path: '/live' })
      assert.deepEqual([live.status, live.text], [500, 'mine'])
      const gone = await ask(t, plane, version, { path: '/gone' })
      assert.deepEqual([gone.status, gone.text], [500, 'mine'])
      const closed = await ask(t, plane, version, { path: '/closed' })
      assert.deepEqual([closed.status, closed.headers['postern-error-code']], [502, 'ERR_UPSTREAM_UNREACHABLE'])
      const dead = await ask(t, plane, version, { path: '/dead' })
      assert.deepEqual([dead.status, dead.text], [503, 'sorry'])
      assert.equal(dead.headers['content-length'], '5')
      assert.equal(dead.headers['content-type'], 'text/plain')
      const head = await ask(t, plane, version, { path: '/dead', method: 'HEAD' })
      assert.deepEqual([head.status, head.text, head.headers['content-length']], [503, '', '5'])
    })

    test('for the name of another edge than that of its connection is misdirected', async (t) => {
      const service = await httpService(t, (_request, response) => response.end('in'))
      const routes = [{ backend: service.backend }]
      const plane = await Plane.start(t, [
        testEdge({ names: ['a.test', 'also-a.test'], routes }),
        testEdge({ names: ['b.test'], routes }),
        testEdge({ names: ['raw.test'], kind: 'tls' }),
      ])
      const cases: [serverName: string, host: string, status: number][] = [
        ['a.test', 'a.test', 200],
        ['a.test', 'A.TEST.:123', 200],
        ['a.test', 'also-a.test', 200],
        ['a.test', 'b.test', 421],
        ['a.test', 'raw.test', 421],
        ['nobody.test', 'a.test', 421],
        ['a.test', 'nobody.test', 404],
      ]
      for (const [serverName, host, status] of cases)
        assert.equal((await ask(t, plane, version, { serverName, host })).status, status, `${serverName} ${host}`)
    })

    test('is misdirected once its edge requires another handshake', async (t) => {
      const service = await httpService(t, (_request, response) => response.end('in'))
      const edge = { names: ['a.test'], routes: [{ backend: service.backend }] }
      const plane = await Plane.start(t, [testEdge({ ...edge, tlsKey: 'with mutual TLS' })])
      plane.asTls = () => ({ tlsKey: 'without' })
      assert.equal((await ask(t, plane, version)).status, 421)
      plane.asTls = () => ({})
      assert.equal((await ask(t, plane, version)).status, 200)
    })

    test('on a connection older than its edge must meet all demands of the edge on connections', async (t) => {
      const service = await httpService(t, (_request, response) => response.end('in'))
      const plane = await Plane.start(t, [])
      const nobody = { edge: undefined, tlsKey: '' }
      plane.asTls = () => nobody
      const cases: [edge: Partial<TestEdge>, status: number][] = [
        [{}, 200],
        [{ tls: { minVersion: 'TLSv1.3' } }, 200],
        [{ tls: { clientAuthorities: [caPem] } }, 421],
        [{ kind: 'tls', tls: null }, 421],
        [{ accept: [() => ({ refuse: 'IP_REFUSED' })] }, 421],
        [{ accept: [() => undefined], handshake: [() => ({ refuse: 'CLIENT_CERTIFICATE_REQUIRED' })] }, 421],
        [{ handshake: [() => undefined] }, 200],
      ]
      for (const [edge, status] of cases) {
        const routes = [{ backend: service.backend }]
        plane.edges.set('a.test', testEdge({ names: ['a.test'], tlsKey: 'its own', routes, ...edge }))
        assert.equal((await ask(t, plane, version)).status, status, JSON.stringify(edge))
      }
    })

    test('gets an error page and a line in the log when a module fails', async (t) => {
      const routes = [
        {
          match: '/now',
          request: [
            () => {
              throw new Error('module failed')
            },
          ],
        },
        { match: '/later', request: [async () => Promise.reject(new Error('module failed later'))] },
      ]
      const plane = await Plane.start(t, [testEdge({ names: ['a.test'], routes })])
      for (const path of ['/now', '/later']) {
        const answer = await ask(t, plane, version, { path })
        assert.equal(answer.status, 500)
        assert.equal(answer.headers['postern-error-code'], 'ERR_BROKEN_MODULE')
      }
      assert.equal(plane.logged.filter((line) => line.includes('module failed')).length, 2)
    })
  })
}

describe('on one HTTP/2 connection', () => {
  test('requests for its own edge pass and those for another do not', async (t) => {
    const service = await httpService(t, (_request, response) => response.end('in'))
    const routes = [{ backend: service.backend }]
    const plane = await Plane.start(t, [
      testEdge({ names: ['a.test'], routes }),
      testEdge({ names: ['b.test'], routes }),
    ])
    const session = openHttp2(t, plane)
    const answers = await Promise.all(
      ['a.test', 'b.test', 'a.test', 'c.test'].map((host) => askOver(session, { host })),
    )
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 421, 200, 404],
    )
  })

  test('a change of the edge applies to the next request', async (t) => {
    const service = await httpService(t, (_request, response) => response.end('in'))
    const plane = await Plane.start(t, [testEdge({ names: ['a.test'], routes: [{ backend: service.backend }] })])
    const session = openHttp2(t, plane)
    assert.equal((await askOver(session, {})).status, 200)
    plane.edges.set(
      'a.test',
      testEdge({ names: ['a.test'], routes: [{ request: [() => ({ refuse: 'IP_REFUSED' })] }] }),
    )
    assert.equal((await askOver(session, {})).status, 403)
    plane.edges.set(
      'a.test',
      testEdge({ names: ['a.test'], tlsKey: 'another', routes: [{ backend: service.backend }] }),
    )
    assert.equal((await askOver(session, {})).status, 421)
  })
})

describe('on the plain listener', () => {
  test('an endpoint is served, an HTTPS or TLS edge redirects to TLS, and nothing else is there', async (t) => {
    const service = await httpService(t, (request, response) => response.end(request.headers['x-forwarded-proto']))
    const routes = [{ backend: service.backend }]
    const plane = await Plane.start(t, [
      testEdge({ names: ['plain.test', 'both.test'], kind: 'http', routes }),
      testEdge({ names: ['a.test', 'both.test'], routes }),
      testEdge({ names: ['raw.test'], kind: 'tls' }),
    ])
    const plain = await askPlain(plane, { host: 'plain.test' })
    assert.deepEqual([plain.status, plain.text], [200, 'http'])
    assert.equal((await askPlain(plane, { host: 'both.test' })).status, 200)
    const moved = await askPlain(plane, { host: 'A.test:80', method: 'POST', path: '/a/../b?c=d' })
    assert.equal(moved.status, 307)
    assert.equal(moved.headers.location, `https://a.test:${plane.httpsPort}/a/../b?c=d`)
    const raw = await askPlain(plane, { host: 'raw.test' })
    assert.deepEqual([raw.status, raw.headers.location], [307, `https://raw.test:${plane.httpsPort}/`])
    assert.equal((await askPlain(plane, { host: 'nobody.test' })).status, 404)
  })

  test('a name that another node may serve waits until that is known', async (t) => {
    const service = await httpService(t, (_request, response) => response.end('found'))
    const asked: string[] = []
    const plane = await Plane.start(t, [], {
      lookUp(listener, name, { hasWaited }) {
        asked.push(`${listener}:${name}`)
        if (hasWaited) return undefined
        const edge = testEdge({ names: ['a.test'], kind: 'http', routes: [{ backend: service.backend }] })
        return new Promise<void>((resolve) => setImmediate(resolve)).then(
          () => void plane.plainEdges.set('a.test', edge),
        )
      },
    })
    const found = await askPlain(plane, {})
    assert.deepEqual([found.status, found.text], [200, 'found'])
    assert.equal((await askPlain(plane, { host: 'nobody.test' })).status, 404)
    assert.deepEqual(asked, ['plain:a.test', 'plain:a.test', 'plain:nobody.test', 'plain:nobody.test'])
  })

  test('a name that could not be looked up in time is answered 503, and not 404', async (t) => {
    const ips: string[] = []
    const plane = await Plane.start(t, [], {
      lookUp(_listener, _name, { hasWaited }, ip) {
        ips.push(ip)
        return hasWaited ? 'busy' : Promise.resolve()
      },
    })
    const { status, headers } = await askPlain(plane, { host: 'a.test' })
    const about = [status, headers['postern-error-code'], headers['retry-after']]
    assert.deepEqual(about, [503, 'ERR_LOOK_UP_BUSY', '1'])
    assert.deepEqual(ips, ['127.0.0.1', '127.0.0.1'])
  })

  test('the usual port is left out', async (t) => {
    const plane = await Plane.start(t, [testEdge({ names: ['a.test'] })], { publicHttpsPort: () => 443 })
    assert.equal((await askPlain(plane, {})).headers.location, 'https://a.test/')
  })
})

test('many requests at once for a name that nothing serves leave the event loop to others', async (t) => {
  let inTurn = 0
  const perTurn: number[] = []
  const plane = await Plane.start(t, [], {
    onRequest: () => {
      if (inTurn++ === 0)
        setImmediate(() => {
          perTurn.push(inTurn)
          inTurn = 0
        })
    },
  })
  const visitor = connect(plane.httpPort, '127.0.0.1')
  visitor.cork()
  const request = 'GET / HTTP/1.1\r\nHost: nobody.example\r\n'
  for (let i = 0; i < 199; i++) visitor.write(`${request}\r\n`)
  visitor.write(`${request}Connection: close\r\n\r\n`)
  visitor.uncork()
  assert.equal((await text(visitor)).split('HTTP/1.1 404').length - 1, 200)
  assert.ok(Math.max(...perTurn) <= 32, perTurn.join())
})
