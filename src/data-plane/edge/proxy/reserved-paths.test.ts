/** Paths that modules reserve on all hosts of their edge: which module answers, and that no other route does. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { PathUse, Phases, ReservedRequest } from '../../../modules/phases.ts'
import { ask, versions } from '../testing/http-visitor.ts'
import { httpService, Plane, type TestRoute, testEdge } from '../testing/test-http-plane.ts'

const CALLBACK = '/oauth2/callback'

/** A route whose module answers the callback with its own name; the service answers with the path. */
function route(
  match: string,
  pathUse: (request: ReservedRequest) => PathUse,
  rest: Partial<TestRoute> = {},
): TestRoute {
  const answer: Phases['request'] = ({ reservedPath }) =>
    reservedPath === undefined ? undefined : { respond: { status: 200, headers: [], body: `${match} ${reservedPath}` } }
  return { match, reserves: [{ path: CALLBACK, pathUse }], request: [answer], ...rest }
}

for (const version of versions) {
  describe(`over HTTP/${version}, a reserved path`, () => {
    const setUp = async (t: Parameters<typeof httpService>[0], routes: readonly TestRoute[]) => {
      const service = await httpService(t, (request, response) => response.end(`service ${request.url}`))
      const withBackend = routes.map((each) => ({ backend: service.backend, ...each }))
      const plane = await Plane.start(t, [testEdge({ names: ['a.test', 'b.test'], routes: withBackend })])
      return async (path: string, host = 'a.test') => {
        const { status, text } = await ask(t, plane, version, { path, host })
        return status === 200 ? text : status
      }
    }

    test('is answered by the module that reserves it, though another route has the path', async (t) => {
      const get = await setUp(t, [{ match: '/oauth2' }, route('/app', () => 'own'), { match: '/' }])
      assert.equal(await get(CALLBACK), `/app ${CALLBACK}`)
      assert.equal(await get(`${CALLBACK}?state=1`, 'b.test'), `/app ${CALLBACK}`)
      assert.equal(await get('/oauth2/other'), 'service /oauth2/other')
      assert.equal(await get('/app/x'), 'service /app/x')
    })

    test('is answered by the module it is for, else by the first spare one in the order of matching', async (t) => {
      const forOne =
        (name: string) =>
        ({ query }: ReservedRequest): PathUse =>
          query === `for=${name}` ? 'own' : query === 'for=nobody' ? 'none' : 'spare'
      const get = await setUp(t, [
        route('/', forOne('root')),
        route('/app', forOne('app')),
        route('/a', forOne('a'), { isExact: true }),
      ])
      assert.equal(await get(`${CALLBACK}?for=root`), `/ ${CALLBACK}`)
      assert.equal(await get(`${CALLBACK}?for=app`), `/app ${CALLBACK}`)
      assert.equal(await get(`${CALLBACK}?for=x`), `/a ${CALLBACK}`)
      // Unclaimed: like any other path.
      assert.equal(await get(`${CALLBACK}?for=nobody`), `service ${CALLBACK}?for=nobody`)
    })

    test('may be claimed by the path of a route, read as a visitor would send it', async (t) => {
      const byPath = ({ query, serves }: ReservedRequest): PathUse => (serves(query) ? 'own' : 'none')
      const get = await setUp(t, [route('/', byPath), route('/app', byPath)])
      assert.equal(await get(`${CALLBACK}?/app/x`), `/app ${CALLBACK}`)
      assert.equal(await get(`${CALLBACK}?/other`), `/ ${CALLBACK}`)
      assert.equal(await get(`${CALLBACK}?/x/../app`), `service ${CALLBACK}?/x/../app`)
    })

    test('runs through the modules of its route in their order', async (t) => {
      const get = await setUp(t, [
        { match: '/' },
        route('/app', () => 'own', { request: [() => ({ refuse: 'IP_REFUSED' })] }),
      ])
      assert.equal(await get(CALLBACK), 403)
    })

    test('that could be read as another is refused, even when one route takes every path', async (t) => {
      for (const routes of [[route('/', () => 'own')], [{ match: '/' }, route('/app', () => 'own')]]) {
        const get = await setUp(t, routes)
        for (const path of [
          '/oauth2/%63allback',
          '/oauth2//callback',
          '/x/../oauth2/callback',
          '/oauth2/callback;a',
          '/oauth2%2fcallback',
          '\\oauth2\\callback'.replace(/^\\/, '/'),
        ]) {
          assert.equal(await get(path), 400, path)
        }
        // A path without such a reading passes.
        assert.equal(await get('/a//b'), 'service /a//b')
      }
    })
  })
}
