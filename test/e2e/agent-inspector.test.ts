/** The inspector of a real agent, with real visitors: what scripts can do, what other sites cannot, and its ports. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { after, before, describe, test } from 'node:test'
import { type AgentProcess, startAgent } from '../support/agent-process.ts'
import { type Platform, startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { httpUpstream, type Owner } from '../support/upstream.ts'
import { visit } from '../support/visitor.ts'
import { echoMessages, WebSocketVisitor } from '../support/websocket.ts'

let platform: Platform
before(async () => {
  platform = await startPlatform()
})
after(() => platform.stop())

interface Asked {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
}

/** Resolves with the URL of this agent's inspector, and a function that sends requests to it. */
async function inspectorOf(agent: AgentProcess) {
  await agent.says(/"inspector online"/)
  const url =
    /"inspector online","url":"(http:\/\/127\.0\.0\.1:\d+)"/.exec(agent.out())?.[1] ?? assert.fail(agent.out())
  const ask = async (path: string, { method = 'GET', headers = {}, body }: Asked = {}) => {
    const typed = body === undefined ? {} : { 'content-type': 'application/json' }
    const sent = request(`${url}${path}`, { method, agent: false, headers: { ...typed, ...headers } })
    sent.end(body === undefined ? undefined : JSON.stringify(body))
    const [response] = await once(sent, 'response')
    const text = String(await buffer(response))
    // biome-ignore lint/suspicious/noExplicitAny: tests look into it
    const json: any = text.startsWith('{') ? JSON.parse(text) : undefined
    return { status: Number(response.statusCode), text, json }
  }
  return { url, ask }
}

async function agentWith(owner: Owner, tunnels: Parameters<typeof startAgent>[1]['tunnels'], more: object = {}) {
  const { agents: server, caFile, authtoken } = platform
  return startAgent(owner, { server, caFile, authtoken, tunnels, ...more })
}

describe('the inspector of an agent', () => {
  test('shows what visitors sent and got, of any kind, and sends it again', async (t) => {
    const bodies: Buffer[] = []
    const binary = Buffer.from(Array.from({ length: 512 }, (_, i) => i & 0xff))
    const { address } = await httpUpstream(t, (asked, response) => {
      void buffer(asked).then((body) => {
        bodies.push(body)
        response.end(asked.url === '/binary' ? binary : `got ${body.length}`)
      })
    })
    const domain = 'inspected.example.com'
    const { ask } = await inspectorOf(await agentWith(t, { web: { addr: address, domain } }))
    const url = `https://${domain}:${platform.httpsPort}`
    const line = `<script>alert(1)</script>\u202e${'x'.repeat(1_000_000)}`
    const broken = Buffer.from([0x61, 0xff, 0xfe, 0x0d, 0x0a])
    await visit(url, platform, { method: 'POST', path: '/line', body: line })
    await visit(url, platform, { method: 'PUT', path: '/broken', body: broken, version: '2' })
    await visit(url, platform, { path: '/binary' })

    const { tunnels } = (await ask('/api/tunnels')).json
    assert.deepEqual([tunnels.length, tunnels[0].name, tunnels[0].public_url], [1, 'web', url])
    assert.deepEqual([tunnels[0].config.addr, tunnels[0].metrics.http.count], [`http://${address}`, 3])

    const { exchanges } = (await ask('/api/exchanges')).json
    assert.deepEqual(
      exchanges.map((each: Record<string, unknown>) => [
        each.method,
        each.path,
        each.host,
        each.status,
        each.client_ip,
      ]),
      [
        ['GET', '/binary', domain, 200, '127.0.0.1'],
        ['PUT', '/broken', domain, 200, '127.0.0.1'],
        ['POST', '/line', domain, 200, '127.0.0.1'],
      ],
    )
    const [asBinary, asBroken, asLine] = await Promise.all(
      exchanges.map(async ({ uri }: { uri: string }) => (await ask(uri)).json),
    )
    const { content: shown, ...kept } = asBinary.response.body
    assert.deepEqual(kept, { size: 512, kept: 512, encoding: 'base64', unpacked: null })
    assert.deepEqual(Buffer.from(shown, 'base64'), binary)
    assert.equal(asBroken.request.body.content, broken.toString('base64'))
    assert.equal(asLine.request.body.content, line)

    const requests = (await ask('/api/requests/http?limit=2&tunnel_name=web')).json.requests
    assert.deepEqual(
      requests.map((each: { request: { uri: string } }) => each.request.uri),
      ['/binary', '/broken'],
    )
    const [{ id }] = requests.slice(1)
    assert.equal((await ask('/api/requests/http', { method: 'POST', body: { id } })).status, 204)
    assert.deepEqual(bodies.at(-1), broken)
    const changed = { method: 'POST', body: { path: '/again', body: 'edited' } }
    const { json } = await ask(`/api/exchanges/${id}/replay`, changed)
    assert.deepEqual([json.path, json.method, json.status, json.replay_of], ['/again', 'PUT', 200, id])
    assert.equal(String(bodies.at(-1)), 'edited')
  })

  test('shows frames of a WebSocket', async (t) => {
    const { address } = await httpUpstream(t, undefined, echoMessages)
    const domain = 'socket.example.com'
    const { ask } = await inspectorOf(await agentWith(t, { web: { addr: address, domain } }))
    const visitor = await WebSocketVisitor.open(`https://${domain}:${platform.httpsPort}`, platform)
    visitor.send(Buffer.from('hello'))
    assert.equal(String(await visitor.receive()), 'hello')
    const frames = await until('both are there', async () => {
      const [item] = (await ask('/api/exchanges')).json.exchanges
      return item?.frame_count === 2 && (await ask(item.uri)).json.frames
    })
    assert.deepEqual(
      frames.map((each: Record<string, unknown>) => [each.from, each.type, each.content]),
      [
        ['client', 'binary', 'hello'],
        ['service', 'binary', 'hello'],
      ],
    )
    visitor.close()
  })

  test('starts and stops tunnels that visitors reach', async (t) => {
    const { address } = await httpUpstream(t, (_asked, response) => void response.end('hello'))
    const { ask } = await inspectorOf(await agentWith(t, { first: { addr: address } }))
    const body = { name: 'second', proto: 'http', addr: address, hostname: 'second.example.com' }
    const { status, json } = await ask('/api/tunnels', { method: 'POST', body })
    assert.deepEqual([status, json.public_url], [201, `https://second.example.com:${platform.httpsPort}`])
    assert.equal((await visit(json.public_url, platform)).text, 'hello')
    assert.equal((await ask(json.uri, { method: 'DELETE' })).status, 204)
    // A name that is not served has no certificate.
    const isGone = () =>
      visit(json.public_url, platform).then(
        ({ status: got }) => got === 404,
        ({ code }: NodeJS.ErrnoException) => code === 'ERR_TLS_CERT_ALTNAME_INVALID',
      )
    await until('it is gone', isGone)
    const refused = await ask('/api/tunnels', { method: 'POST', body: { ...body, name: 'web', proto: 'none' } })
    assert.deepEqual([refused.status, refused.json.error_code], [400, 102])
  })

  test('accepts nothing from pages of other sites', async (t) => {
    const { address } = await httpUpstream(t)
    const { url, ask } = await inspectorOf(await agentWith(t, { web: { addr: address } }))
    for (const headers of [
      { host: 'rebound.example.com' },
      { origin: 'https://evil.example.com' },
      { 'sec-fetch-site': 'cross-site' },
    ]) {
      assert.equal((await ask('/api/tunnels', { headers })).status, 403)
      const body = { proto: 'tcp', addr: 22 }
      assert.equal((await ask('/api/tunnels', { method: 'POST', headers, body })).status, 403)
    }
    assert.equal((await ask('/api/tunnels', { headers: { origin: url } })).json.tunnels.length, 1)
  })
})

describe('the address of the inspector', () => {
  test('is different for each agent of a machine', async (t) => {
    const { address } = await httpUpstream(t)
    const agents = [await agentWith(t, { one: { addr: address } }), await agentWith(t, { two: { addr: address } })]
    const [one, two] = await Promise.all(agents.map((agent) => inspectorOf(agent)))
    assert.notEqual(one?.url, two?.url)
    const names = await Promise.all(
      [one, two].map(async (each) => (await each?.ask('/api/tunnels'))?.json.tunnels[0].name),
    )
    assert.deepEqual(names, ['one', 'two'])
  })

  test('is the one in the file, or the next free port', async (t) => {
    const { address, port } = await httpUpstream(t)
    const listen = { inspectListen: `127.0.0.1:${port}` }
    const { url } = await inspectorOf(await agentWith(t, { web: { addr: address } }, listen))
    const got = Number(new URL(url).port)
    assert.ok(got > port && got < port + 100, url)
  })

  test('does not exist when the file says false', async (t) => {
    const { address } = await httpUpstream(t, (_asked, response) => void response.end('hello'))
    const agent = await agentWith(t, { web: { addr: address, domain: 'off.example.com' } }, { inspectListen: false })
    assert.equal((await visit(`https://off.example.com:${platform.httpsPort}`, platform)).text, 'hello')
    assert.doesNotMatch(agent.out(), /inspector/)
  })
})
