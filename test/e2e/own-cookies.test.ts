/** D106: the cookies by which somebody is signed in never reach a service, on any way to it. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import { after, before, test } from 'node:test'
import { until } from '../support/until.ts'
import { ownAgent } from './edges/agents.ts'
import { type Recorder, recorder } from './edges/upstreams.ts'
import { dialled, readUntil, versions } from './edges/visitor.ts'
import { type HttpsEdge, World } from './edges/world.ts'

let world: World
let service: Recorder
let edge: HttpsEdge
/** The cookie of an admin who is signed in to the dashboard. */
let ofAdmin: string
const others = ['theme=dark;  a="1"', 'b=2']

/** The rule copies all that it can see of the cookies. */
const copying = {
  enabled: true,
  inbound: [{ actions: [{ type: 'add-headers', config: { headers: { 'x-copy': "${getReqHeader('cookie')}" } } }] }],
}

before(async () => {
  world = await World.start()
  service = await recorder(world)
  const { origin, host } = new URL(world.platform.url)
  const signedIn = await fetch(`${origin}/page/session`, {
    method: 'POST',
    headers: { origin, host, 'sec-fetch-site': 'same-origin', 'content-type': 'application/json' },
    body: JSON.stringify({ api_key: world.platform.apiKey }),
  })
  ofAdmin = signedIn.headers.getSetCookie()[0]?.split(';')[0] ?? ''
  assert.match(ofAdmin, /^postern-page-\d+=.{40}/)
  edge = await world.httpsTo(service, { policy: copying })
})
after(() => world.stop())

function checkLast(what: string): void {
  const { last } = service
  const all = last.names.flatMap((name) => last.all(name)).join('\n')
  assert.ok(!all.includes(ofAdmin.slice(ofAdmin.indexOf('=') + 1)) && !all.includes('postern-page'), `${what}: ${all}`)
}

for (const version of versions) {
  test(`over HTTP/${version}, in one header or in several, and whatever a rule copies`, async () => {
    const { '0': first = '', '1': second = '' } = others
    const sent = [[`${first}; ${ofAdmin}; ${second}`], [first, ofAdmin, second], [ofAdmin]]
    for (const cookie of sent) {
      assert.equal((await world.ask(edge.name, { version, headers: { cookie } })).status, 200)
      checkLast(JSON.stringify(cookie))
      const left = cookie.length === 3 && version === '1.1' ? others : cookie[0] === ofAdmin ? [] : [others.join('; ')]
      assert.deepEqual(service.last.all('cookie'), left)
      assert.deepEqual(JSON.parse(service.last.get('x-copy') ?? ''), left)
    }
  })
}

test('in an upgrade', async () => {
  const socket = await dialled({ name: edge.name, port: world.platform.httpsPort, ca: world.platform.ca })
  const head = [`Host: ${edge.name}`, 'Connection: Upgrade', 'Upgrade: websocket', `Cookie: b=2; ${ofAdmin}`]
  socket.write(`GET /ws HTTP/1.1\r\n${head.join('\r\n')}\r\n\r\n`)
  await readUntil(socket, (text) => text.includes('hello'))
  socket.destroy()
  checkLast('upgrade')
  assert.deepEqual(
    [service.last.url, service.last.get('upgrade'), service.last.get('cookie')],
    ['/ws', 'websocket', 'b=2'],
  )
})

test('through the tunnel of a member’s agent, over plain HTTP', async (t) => {
  const { api } = await world.platform.member()
  const { token: authtoken } = await api.create('/credentials')
  const agent = await ownAgent(t, world, { authtoken })
  const tunnel = await agent.forward({ addr: service.address, schemes: ['http'] })
  const { hostname } = new URL(tunnel.url ?? '')
  const asked = request({
    host: '127.0.0.1',
    port: world.platform.httpPort,
    path: '/tunnel',
    agent: false,
    headers: { host: hostname, cookie: `${ofAdmin}; b=2` },
  })
  asked.end()
  const [answer] = await once(asked, 'response')
  answer.resume()
  assert.equal(answer.statusCode, 200)
  checkLast('tunnel')
  assert.deepEqual([service.last.url, service.last.get('cookie')], ['/tunnel', 'b=2'])
})

test('in a capture that masks nothing, and in what is replayed from it', async () => {
  await world.api.create('/captures', { edge_id: edge.id, unmask: true })
  let id = ''
  await until('an exchange is captured', async () => {
    await world.ask(edge.name, { path: '/captured', headers: { cookie: `b=2; ${ofAdmin}` } })
    const { exchanges } = await world.api.get(`/exchanges?edge_id=${edge.id}&path=/captured&limit=1`)
    id = exchanges[0]?.id ?? ''
    return id !== '' && (await world.api.get(`/exchanges/${id}`)).request !== null
  })
  const { request: kept } = await world.api.get(`/exchanges/${id}`)
  assert.ok(!JSON.stringify(kept).includes('postern-page'), JSON.stringify(kept))
  const headers = [
    { name: 'Host', value: edge.name },
    { name: 'Cookie', value: `c=3; ${ofAdmin}` },
  ]
  for (const [body, cookie] of [
    [{}, 'b=2'],
    [{ headers }, 'c=3'],
  ] as const) {
    const answer = await world.api.send('POST', `/exchanges/${id}/replay`, { body })
    assert.equal(answer.status, 201, answer.text)
    checkLast('replay')
    assert.equal(service.last.get('cookie'), cookie)
  }
})
