/** Rules over real sockets, beyond single actions, which `policy-table.test.ts` covers. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { until } from '../support/until.ts'
import { type Recorder, recorder, shouts } from './edges/upstreams.ts'
import { type Answer, dial, versions } from './edges/visitor.ts'
import { World } from './edges/world.ts'

let world: World
let service: Recorder
before(async () => {
  world = await World.start()
  service = await recorder(world)
})
after(() => world.stop())

for (const version of versions) {
  describe(`on a route, over HTTP/${version}`, () => {
    test('rules for responses run on a custom response, but not on a denial', async () => {
      const outbound = [{ actions: [{ type: 'add-headers', config: { headers: { 'x-seen': 'yes' } } }] }]
      const answer = async (type: string): Promise<Answer> => {
        const { name } = await world.httpsTo(service, { policy: { inbound: [{ actions: [{ type }] }], outbound } })
        return world.ask(name, { version })
      }
      assert.equal((await answer('custom-response')).headers['x-seen'], 'yes')
      assert.equal((await answer('deny')).headers['x-seen'], undefined)
    })

    test('rules read the host, the announced length, and whether the body comes in pieces', async () => {
      const read = ['host', 'content-length', 'transfer-encoding'].map(
        (key) => `('${key}' in req.headers ? req.headers['${key}'][0] : '-')`,
      )
      const expression = `${read.join(" + ' ' + ")} + ' ' + string(req.content_length)`
      const config = { body: `\${${expression}}` }
      const { name } = await world.httpsTo(service, {
        policy: { inbound: [{ actions: [{ type: 'custom-response', config }] }] },
      })
      const ask = async (about: object): Promise<string> => (await world.ask(name, { version, ...about })).text
      assert.equal(await ask({}), `${name} - - 0`)
      assert.equal(
        await ask({ method: 'POST', headers: version === '2' ? { 'content-length': '5' } : {}, body: 'hello' }),
        `${name} 5 - 5`,
      )
      const inPieces = version === '2' ? '-' : 'chunked'
      assert.equal(await ask({ method: 'POST', body: 'hello', trailers: { 'x-last': '1' } }), `${name} - ${inPieces} 0`)
    })
  })
}

test('actions send no requests to private addresses unless the operator allows it; without an answer, no request passes', async () => {
  const asked = await recorder(world)
  const origin = `http://${asked.address}`
  const application = { client_id: 'app', client_secret: 'hush-hush' }
  const tokens = [{ type: 'jwt', method: 'header', name: 'x-token' }]
  const sources = { additional_jkus: [`${origin}/keys`] }
  const actions: Readonly<Record<string, { type: string; config: object }>> = {
    ERR_POLICY_REQUEST_FAILED: { type: 'http-request', config: { url: origin, on_error: 'halt' } },
    ERR_KEYS_UNAVAILABLE: {
      type: 'jwt-validation',
      config: {
        issuer: { allow_list: [{ value: origin }] },
        http: { tokens },
        jws: { allowed_algorithms: ['ES256'], keys: { sources } },
      },
    },
    ERR_LOGIN_PROVIDER_DOWN: { type: 'openid-connect', config: { issuer_url: origin, ...application } },
  }
  const part = Buffer.from('{"alg":"ES256"}').toString('base64url')
  const before = service.seen.length
  for (const [code, action] of Object.entries(actions)) {
    const { name } = await world.httpsTo(service, { policy: { inbound: [{ actions: [action] }] } })
    const answer = await world.ask(name, { headers: { 'x-token': `${part}.${part}.AAAA` } })
    assert.deepEqual([answer.status, answer.code], [502, code])
  }
  assert.equal(asked.seen.length, 0)
  assert.equal(service.seen.length, before)
})

test('a route has a login module or a login rule; adding the other is refused', async () => {
  const application = { client_id: 'app', client_secret: 'hush-hush' }
  const login = { type: 'oauth', config: { provider: 'github', ...application } }
  const policy = { inbound: [{ actions: [login] }] }
  const oauth = { provider: { github: application } }
  const byRule = await world.httpsTo(service, { policy })
  const byModule = await world.httpsTo(service, { oauth })
  const refused = (edge: typeof byRule, module: string, body: object) =>
    world.api.refused('ERR_SEVERAL_LOGINS', 'PUT', `${edge.routes[0]?.path}/${module}`, { body })
  await refused(byRule, 'oauth', oauth)
  await refused(byModule, 'policy', policy)
  await refused(byModule, 'traffic_policy', { value: JSON.stringify({ on_http_request: policy.inbound }) })
  await world.api.put(`${byRule.routes[0]?.path}/oauth`, { ...oauth, enabled: false })
})

describe('on TCP and TLS edges', () => {
  const from = (ip: string) => ({
    inbound: [{ expressions: [`conn.client_ip == '${ip}'`], actions: [{ type: 'deny' }] }],
  })

  test('deny closes a connection before the service is dialled', async () => {
    const upstream = await shouts(world)
    const { port } = await world.tcpEdge({ backend: await world.toAddress(upstream), policy: from('127.0.0.3') })
    const talk = async (localAddress: string): Promise<string> => {
      const socket = connect({ port, host: '127.0.0.1', localAddress }).on('error', () => {})
      socket.write('a')
      const said = await Promise.race([once(socket, 'data'), once(socket, 'close').then(() => ['closed'])])
      socket.destroy()
      return String(said[0])
    }
    assert.equal(await talk('127.0.0.3'), 'closed')
    assert.equal(upstream.sockets.length, 0)
    assert.equal(await talk('127.0.0.4'), 'A')
  })

  for (const [what, rule, isEnded] of [
    ['passed through', "conn.tls.sni.startsWith('e') && conn.client_ip == '127.0.0.3'", false],
    ['ended here', "conn.tls.version == '1.3' && conn.client_ip == '127.0.0.3'", true],
  ] as const) {
    test(`a TLS edge whose TLS is ${what} closes connections by its rules`, async () => {
      const upstream = await shouts(world)
      const { name, port } = await world.tlsEdge({
        backend: await world.toAddress(upstream),
        policy: { inbound: [{ expressions: [rule], actions: [{ type: 'deny' }] }] },
        ...(isEnded && { tls_termination: { terminate_at: 'edge' } }),
      })
      const visit = async (address: string): Promise<void> => {
        const socket = dial({ name, port, ca: world.platform.ca }, { from: address })
        socket.on('secureConnect', () => socket.write('a'))
        const closed = new Promise((resolve) => socket.once('close', resolve))
        await Promise.race([closed, until('the service is reached', () => upstream.sockets.length > 0)])
        socket.destroy()
      }
      await visit('127.0.0.3')
      assert.equal(upstream.sockets.length, 0)
      await visit('127.0.0.4')
      assert.equal(upstream.sockets.length, 1)
    })
  }
})
