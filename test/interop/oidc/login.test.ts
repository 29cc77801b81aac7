/** Logins with a certified OpenID Connect provider, through the API and on the wire, over both versions of HTTP. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type Recorder, recorder } from '../../e2e/edges/upstreams.ts'
import { versions } from '../../e2e/edges/visitor.ts'
import { type HttpsEdge, World } from '../../e2e/edges/world.ts'
import { JarClient } from './jar-client.ts'
import { CLIENT_ID, type RealProvider, realProvider } from './provider.ts'

const NAME = 'app.login.test'
const OTHER = 'other.login.test'

let world: World
let service: Recorder
let provider: RealProvider
let edge: HttpsEdge
const url = (path = '/', name = NAME): string => `https://${name}:${world.platform.httpsPort}${path}`

before(async () => {
  world = await World.start({ flags: { 'outbound-allow': '127.0.0.1/32', 'log-level': 'debug' } })
  service = await recorder(world)
  provider = await realProvider(world, [url('/oauth2/callback'), url('/oauth2/callback', OTHER)])
  const backend = await world.toAddress(service)
  const oidc = { issuer: provider.issuer, client_id: CLIENT_ID, client_secret: provider.clientSecret }
  edge = await world.httpsEdge({
    names: [NAME, OTHER],
    routes: [
      { match: '/', backend },
      { match: '/app', backend, oidc: { ...oidc, scopes: ['email', 'profile'] } },
      { match: '/plain', backend, oidc },
    ],
  })
})
after(() => world.stop())

for (const version of versions) {
  describe(`over HTTP/${version}`, () => {
    const logIn = async (path = '/app/x?y=1'): Promise<JarClient> => {
      provider.user = 'ada'
      const client = new JarClient(world.platform, version)
      const { status, url: end } = await client.open(url(path))
      assert.deepEqual([status, end], [200, url(path)])
      return client
    }

    test('a visitor logs in, comes back, and the service knows who it is', async () => {
      await logIn()
      assert.equal(service.last.url, '/app/x?y=1')
      assert.equal(service.last.get('postern-auth-user-id'), 'ada')
      assert.equal(service.last.get('postern-auth-user-name'), 'ada of the test')
      assert.equal(service.last.get('postern-auth-user-email'), 'ada@example.com')
      assert.ok(service.last.get('postern-auth-oauth-access-token'))
      assert.equal(service.last.get('cookie'), undefined)
    })

    test('only logged-in visitors reach the service, and identity headers never come from the visitor', async () => {
      const before = service.seen.length
      const stranger = new JarClient(world.platform, version)
      for (const method of ['GET', 'HEAD', 'POST', 'OPTIONS', 'DELETE']) {
        const { status, headers } = await stranger.get(url('/app'), { 'postern-auth-user-id': 'root' }, method)
        assert.equal(status, 302, method)
        assert.equal(headers['cache-control'], 'no-store')
      }
      assert.equal(service.seen.length, before)
      const client = await logIn()
      const forged = {
        'postern-auth-user-id': 'root',
        'Postern-Auth-User-Email': 'root@example.com',
        postern_auth_user_id: 'root',
      }
      assert.equal((await client.get(url('/app'), version === '2' ? lower(forged) : forged)).status, 200)
      assert.deepEqual(service.last.all('postern-auth-user-id'), ['ada'])
      assert.deepEqual(service.last.all('postern-auth-user-email'), ['ada@example.com'])
      assert.ok(!service.last.names.includes('postern_auth_user_id'))
    })

    test('routes without a login stay open, and another route requires its own login', async () => {
      const client = await logIn()
      assert.equal((await new JarClient(world.platform, version).get(url('/'))).status, 200)
      assert.equal((await client.get(url('/plain'))).status, 302)
      assert.equal((await client.open(url('/plain'))).status, 200)
      assert.equal(service.last.get('postern-auth-user-id'), 'ada')
      // The first login is still valid.
      assert.equal((await client.get(url('/app'))).status, 200)
    })

    test('no service behind the edge sees the cookies of a login, through any route', async () => {
      const client = await logIn()
      client.jar(new URL(url()).host).set('own', '1')
      for (const path of ['/', '/app', '/other']) {
        assert.equal((await client.get(url(path))).status, 200)
        assert.equal(service.last.url, path)
        assert.equal(service.last.get('cookie'), 'own=1')
      }
    })

    test('a login at one name of an edge is invalid at another', async () => {
      const client = await logIn()
      const session = client.jar(new URL(url()).host).get('__Host-postern.session') ?? ''
      client.jar(new URL(url('/', OTHER)).host).set('__Host-postern.session', session)
      assert.equal((await client.get(url('/app', OTHER))).status, 302)
    })

    test('logout ends it, and the next login may be as another user', async () => {
      const client = await logIn()
      const out = await client.get(url('/postern/logout'))
      assert.deepEqual([out.status, out.headers.location], [302, '/'])
      assert.equal((await client.get(url('/app'))).status, 302)
      provider.user = 'grace'
      client.jars.delete(new URL(provider.issuer).host)
      const { status, url: end, hops } = await client.open(url('/postern/login?to=/app/z'))
      assert.deepEqual([status, end], [200, url('/app/z')])
      assert.ok(hops.some((hop) => hop.includes('prompt=login')))
      assert.equal(service.last.get('postern-auth-user-id'), 'grace')
    })

    test('a user who cancels sees a message, and is not let in', async () => {
      const client = new JarClient(world.platform, version)
      provider.user = undefined
      const { status, headers } = await client.open(url('/app'))
      assert.equal(status, 403)
      assert.equal(headers['postern-error-code'], 'ERR_LOGIN_DENIED')
      assert.equal((await client.get(url('/app'))).status, 302)
    })

    test('a callback that is opened elsewhere, or again, is refused', async () => {
      const client = await logIn('/app')
      const stranger = new JarClient(world.platform, version)
      const victim = new JarClient(world.platform, version)
      let at = url('/app')
      // Follows the login up to the callback, which another browser then opens.
      while (!at.includes('/oauth2/callback')) at = new URL(String((await stranger.get(at)).headers.location), at).href
      const stolen = await victim.get(at)
      assert.equal(stolen.headers['postern-error-code'], 'ERR_LOGIN_OTHER_BROWSER')
      assert.equal((await stranger.get(at)).status, 302)
      assert.equal((await stranger.get(at)).headers['postern-error-code'], 'ERR_LOGIN_OTHER_BROWSER')
      assert.equal((await client.get(url('/app'))).status, 200)
    })

    test('a login ends when the settings of its module change', async () => {
      const client = await logIn()
      const path = `${edge.routes[1]?.path}/oidc`
      const before = await world.api.get(path)
      await world.api.put(path, { ...before, scopes: ['email'] })
      await world.inForce()
      assert.equal((await client.get(url('/app'))).status, 302)
      await world.api.put(path, before)
      await world.inForce()
    })
  })
}

test('a provider that cannot be reached is a 502', async () => {
  const backend = await world.toAddress(service)
  const oidc = { issuer: 'http://127.0.0.1:1', client_id: 'a', client_secret: 'b' }
  const { name } = await world.httpsEdge({ routes: [{ backend, oidc }] })
  const { status, code } = await world.ask(name)
  assert.deepEqual([status, code], [502, 'ERR_LOGIN_PROVIDER_DOWN'])
})

test('no token, code or secret is in the log', () => {
  const log = world.platform.log.join('')
  assert.ok(log.includes('a login failed'))
  const token = service.seen
    .map((seen) => seen.get('postern-auth-oauth-access-token'))
    .find((each) => each !== undefined)
  assert.ok(token)
  for (const secret of [token, provider.clientSecret]) assert.ok(!log.includes(secret))
  assert.doesNotMatch(log, /eyJ|[?&]code=|postern\.session/)
})

/** HTTP/2 has no capitals. */
function lower(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
}
