// biome-ignore-all lint/suspicious/noTemplateCurlyInString: policies write their placeholders like this
/** Logins that rules of a policy require, with a certified provider: on a stored edge and on an agent's endpoint. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import ngrok from '@ngrok/ngrok'
import { type Recorder, recorder } from '../../e2e/edges/upstreams.ts'
import { versions } from '../../e2e/edges/visitor.ts'
import { World } from '../../e2e/edges/world.ts'
import { JarClient } from './jar-client.ts'
import { CLIENT_ID, type RealProvider, realProvider } from './provider.ts'

const kinds = { 'a stored edge': 'stored.policy.test', 'an endpoint of an agent': 'agent.policy.test' }

let world: World
let service: Recorder
let provider: RealProvider
const url = (name: string, path: string): string => `https://${name}:${world.platform.httpsPort}${path}`

before(async () => {
  world = await World.start({ flags: { 'outbound-allow': '127.0.0.1/32' } })
  service = await recorder(world)
  provider = await realProvider(
    world,
    Object.values(kinds).map((name) => url(name, '/oauth2/callback')),
  )
  const login = (auth_id: string, scopes: string[]) => ({
    type: 'openid-connect',
    config: {
      issuer_url: provider.issuer,
      client_id: CLIENT_ID,
      client_secret: provider.clientSecret,
      auth_id,
      scopes,
    },
  })
  const identity = 'actions.ngrok.oidc.identity'
  const policy = {
    on_http_request: [
      { expressions: ["req.url.path.startsWith('/staff')"], actions: [login('staff', ['email', 'profile'])] },
      { expressions: ["req.url.path.startsWith('/guests')"], actions: [login('guests', [])] },
      {
        expressions: ["req.url.path.startsWith('/staff')", `!(${identity}.email in ['ada@example.com'])`],
        actions: [{ type: 'deny' }],
      },
      {
        expressions: ["req.url.path.startsWith('/staff')"],
        actions: [{ type: 'add-headers', config: { headers: { 'x-who': `\${${identity}.name}` } } }],
      },
    ],
  }
  const value = JSON.stringify(policy)
  const backend = await world.toAddress(service)
  await world.httpsEdge({ names: [kinds['a stored edge']], routes: [{ backend, traffic_policy: { value } }] })
  const { agents, authtoken, ca } = world.platform
  const session = await new ngrok.SessionBuilder()
    .authtoken(authtoken)
    .serverAddr(agents)
    .caCert(Buffer.from(ca))
    .connect()
  world.after(() => session.close())
  const endpoint = session.httpEndpoint().domain(kinds['an endpoint of an agent']).trafficPolicy(value)
  await endpoint.listenAndForward(`http://${service.address}`)
})
after(() => world.stop())

for (const [kind, name] of Object.entries(kinds)) {
  for (const version of versions) {
    describe(`on ${kind}, over HTTP/${version}`, () => {
      const at = (path: string): string => url(name, path)

      test('a visitor logs in, and the rules and the service know who it is', async () => {
        provider.user = 'ada'
        const client = new JarClient(world.platform, version)
        const { status, url: end } = await client.open(at('/staff/x?y=1'))
        assert.deepEqual([status, end], [200, at('/staff/x?y=1')])
        assert.equal(service.last.url, '/staff/x?y=1')
        assert.equal(service.last.get('x-who'), 'ada of the test')
        assert.equal(service.last.get('postern-auth-user-email'), 'ada@example.com')
        assert.equal(service.last.get('cookie'), undefined)
        const { status: open } = await client.get(at('/open'), { 'postern-auth-user-id': 'root' })
        assert.equal(open, 200)
        assert.equal(service.last.get('postern-auth-user-id'), undefined)
      })

      test('a user who is not on the list is logged in, but not let in', async () => {
        provider.user = 'grace'
        const client = new JarClient(world.platform, version)
        const before = service.seen.length
        assert.equal((await client.open(at('/staff'))).status, 403)
        assert.equal(service.seen.length, before)
        assert.equal((await client.open(at('/guests'))).status, 200)
        assert.equal(service.last.get('postern-auth-user-id'), 'grace')
      })

      test('the logins of a route are separate, and logout ends both', async () => {
        provider.user = 'ada'
        const client = new JarClient(world.platform, version)
        await client.open(at('/guests'))
        assert.equal((await client.get(at('/guests'))).status, 200)
        assert.equal((await client.get(at('/staff'))).status, 302)
        const { url: end } = await client.open(at('/postern/login?auth_id=staff&to=/staff/a'))
        assert.equal(end, at('/staff/a'))
        for (const path of ['/guests', '/staff']) assert.equal((await client.get(at(path))).status, 200)
        const out = await client.get(at('/postern/logout'))
        assert.deepEqual([out.status, out.headers.location], [302, '/'])
        for (const path of ['/guests', '/staff']) assert.equal((await client.get(at(path))).status, 302)
      })
    })
  }
}

test('sessions of such logins are listed with their route', async () => {
  provider.user = 'ada'
  const name = kinds['a stored edge']
  await new JarClient(world.platform, '1.1').open(url(name, '/staff'))
  const { application_sessions: sessions } = await world.api.get('/app/sessions')
  const [session] = sessions.filter(({ public_url }: { public_url: string }) => public_url === `https://${name}`)
  assert.match(session.route.id, /^edghtsrt_[0-9A-Za-z]{27}$/)
})
