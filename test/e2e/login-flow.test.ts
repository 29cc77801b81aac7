/** Logins over real sockets, up to the point where a provider is needed: redirects and reserved paths. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type Recorder, recorder } from './edges/upstreams.ts'
import { versions } from './edges/visitor.ts'
import { type HttpsEdge, World } from './edges/world.ts'

let world: World
let service: Recorder
let edge: HttpsEdge
let bare: HttpsEdge
before(async () => {
  world = await World.start()
  service = await recorder(world)
  const backend = await world.toAddress(service)
  const application = { client_id: 'app', client_secret: 'hush-hush' }
  edge = await world.httpsEdge({
    routes: [
      { match: '/', backend },
      { match: '/gl', backend, oauth: { provider: { gitlab: application }, options_passthrough: true } },
      { match: '/github', backend, oauth: { provider: { github: application } } },
    ],
  })
  bare = await world.httpsTo(service)
})
after(() => world.stop())

const gitlab = 'https://gitlab.com/oauth/authorize'
const github = 'https://github.com/login/oauth/authorize'

for (const version of versions) {
  describe(`over HTTP/${version}`, () => {
    /** Where a visitor is redirected to, without the query; or the status and code of the answer. */
    const sentTo = async (path: string, method = 'GET', name = edge.name): Promise<string> => {
      const before = service.seen.length
      const { status, code, headers } = await world.ask(name, { version, path, method })
      const isAsked = service.seen.length > before
      if (status !== 302) return `${status}${code === undefined ? '' : ` ${code}`}${isAsked ? ' from the service' : ''}`
      assert.ok(!isAsked, 'the service was asked by a stranger')
      assert.equal(headers['cache-control'], 'no-store')
      return String(headers.location).replace(/\?.*$/, '')
    }

    test('visitors who are not logged in are sent to the provider of the route, whatever they request', async () => {
      assert.equal(await sentTo('/'), '200 from the service')
      for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'OPTIONS'])
        assert.equal(await sentTo('/github', method), github)
      assert.equal(await sentTo('/gl/x?y'), gitlab)
      assert.equal(await sentTo('/gl', 'OPTIONS'), '200 from the service')
      assert.equal(await sentTo('/gl', 'POST'), gitlab)
    })

    test('visitors cannot forge the headers of a login, on routes with and without one', async () => {
      const names = ['user-id', 'user-email', 'github-user-id', 'github-organization', 'github-team', 'anything']
      const spellings = names.flatMap((name) => [
        `postern-auth-${name}`,
        `postern_auth_${name}`,
        `postern-auth_${name}`,
      ])
      const forged = Object.fromEntries([...spellings, 'x-seen'].map((name) => [name, 'root']))
      for (const [path, method] of [
        ['/', 'GET'],
        ['/gl', 'OPTIONS'],
      ] as const) {
        assert.equal((await world.ask(edge.name, { version, path, method, headers: forged })).status, 200)
        assert.equal(service.last.get('x-seen'), 'root')
        assert.ok(!service.last.names.some((name) => /^postern.auth/i.test(name)), service.last.names.join())
      }
    })

    test('the login path uses the login of the route that its target matches, or else the first', async () => {
      assert.equal(await sentTo('/postern/login?to=/gl/x'), gitlab)
      assert.equal(await sentTo('/auth/authn?to=/github'), github)
      assert.equal(await sentTo('/postern/login?to=/gl%3Fa=/github'), gitlab)
      for (const to of ['', '?to=/', '?to=/other', '?to=//gl', '?to=https://gl/gl', '?to=/x/../gl']) {
        assert.equal(await sentTo(`/postern/login${to}`), github, to)
      }
    })

    test('login paths never reach a service of an edge with a login, but do on other edges', async () => {
      assert.equal(await sentTo('/oauth2/callback'), '400 ERR_LOGIN_STATE_MISSING')
      assert.equal(await sentTo('/oauth2/callback?code=1&state=x'), '400 ERR_LOGIN_STATE_INVALID')
      assert.equal(await sentTo('/postern/logout'), '/')
      assert.equal(await sentTo('/auth/logout', 'POST'), '/')
      assert.equal(await sentTo('/postern/login', 'PUT'), '405')
      for (const path of ['/oauth2/callback', '/postern/login', '/postern/logout', '/auth/authn', '/auth/logout']) {
        assert.equal(await sentTo(path, 'GET', bare.name), '200 from the service')
      }
    })

    test('a module that is disabled or gone logs nobody in', async () => {
      const { name, routes } = await world.httpsTo(service, {
        oauth: { provider: { github: { client_id: 'app', client_secret: 'hush-hush' } } },
      })
      const path = `${routes[0]?.path}/oauth`
      assert.equal(await sentTo('/', 'GET', name), github)
      await world.api.put(path, { ...(await world.api.get(path)), enabled: false })
      await world.inForce()
      assert.equal(await sentTo('/', 'GET', name), '200 from the service')
      assert.equal(await sentTo('/oauth2/callback', 'GET', name), '200 from the service')
    })
  })
}
