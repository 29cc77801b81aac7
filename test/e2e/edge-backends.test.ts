/** Which backend gets the next request or connection of an edge: tunnel groups, weighted, failover and static backends. */
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { TestAgent } from '../../src/data-plane/tunnel/testing/raw-agent.ts'
import { Secret } from '../../src/lib/secrets/secret.ts'
import { tlsIdentity } from '../support/tls-identity.ts'
import { until } from '../support/until.ts'
import { nobody, type Owner, tcpUpstream, tlsUpstream } from '../support/upstream.ts'
import { ownAgent, sdkTunnel } from './edges/agents.ts'
import { type Recorder, recorder } from './edges/upstreams.ts'
import { askHttp1, askHttp2, dialled, http2Over, readToEnd, versions } from './edges/visitor.ts'
import { World } from './edges/world.ts'

let world: World
before(async () => {
  // One plane: each plane takes the tunnels in turn by itself, and the turns here are exact.
  world = await World.start({ planeCount: 1 })
})
after(() => world.stop())

/** A service that answers its name, over HTTP. */
const named = (owner: Owner, name: string): Promise<Recorder> => recorder(owner, (_, response) => response.end(name))

/** What a visitor of a TCP edge reads. */
async function readFrom(port: number): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  return (await readToEnd(socket)).toString()
}

let labels = 0
/** Labels that no other test uses. */
const freshLabels = () => ({ test: `${++labels}` })

describe('a tunnel group', () => {
  test('uses its tunnels in turn for each request, the oldest first', async (t) => {
    const group = freshLabels()
    const backend = await world.toBackend('tunnel_group', { labels: group })
    const https = await world.httpsEdge({ routes: [{ backend }] })
    for (const name of ['a', 'b', 'c']) {
      const agent = await ownAgent(t, world)
      await agent.forward({ addr: (await named(t, name)).address, labels: { ...group, extra: name } })
    }
    const listener = { name: https.name, port: world.platform.httpsPort, ca: world.platform.ca }
    const socket = await dialled(listener)
    const session = http2Over(await dialled(listener, { version: '2' }), listener)
    const reported: string[] = []
    for (let i = 0; i < 3; i++) reported.push((await world.ask(https.name)).text)
    for (let i = 0; i < 6; i++) reported.push((await askHttp1(socket, listener)).text)
    for (let i = 0; i < 6; i++) reported.push((await askHttp2(session, listener)).text)
    assert.equal(reported.join(''), 'abc'.repeat(5))
    session.destroy()
    socket.destroy()
  })

  test('spreads connections of a TCP edge over its tunnels in turn', async (t) => {
    const group = freshLabels()
    const tcp = await world.tcpEdge({ backend: await world.toBackend('tunnel_group', { labels: group }) })
    assert.equal(await readFrom(tcp.port), '', 'no tunnel is online')
    const agent = await ownAgent(t, world)
    for (const name of ['a', 'b']) {
      const bytes = await tcpUpstream(t, (socket) => socket.end(name))
      await agent.forward({ addr: bytes.address, labels: group })
    }
    const reported: string[] = []
    for (let i = 0; i < 6; i++) reported.push(await readFrom(tcp.port))
    assert.match(reported.join(''), /^(ab){3}$|^(ba){3}$/)
  })

  test('consists of the tunnels that carry exactly all of its labels', async (t) => {
    const { test: value } = freshLabels()
    const { name } = await world.httpsEdge({
      routes: [{ backend: await world.toBackend('tunnel_group', { labels: { App: 'Web', test: value } }) }],
    })
    const agent = await ownAgent(t, world)
    const service = await named(t, 'found')
    const others: Record<string, string>[] = [
      { App: 'Web' },
      { test: value },
      { app: 'Web', test: value },
      { App: 'web', test: value },
    ]
    for (const other of others) await agent.forward({ addr: service.address, labels: other })
    for (const version of versions) {
      const { status, code } = await world.ask(name, { version })
      assert.deepEqual([status, code], [503, 'ERR_BACKEND_OFFLINE'])
    }
    await agent.forward({ addr: service.address, labels: { more: '1', test: value, App: 'Web' } })
    assert.equal((await world.ask(name)).text, 'found')
  })

  test('follows tunnels that come and go', async (t) => {
    const group = freshLabels()
    const { name } = await world.httpsEdge({
      routes: [{ backend: await world.toBackend('tunnel_group', { labels: group }) }],
    })
    const stays = await ownAgent(t, world)
    const goes = await ownAgent(t, world)
    const a = await stays.forward({ addr: (await named(t, 'a')).address, labels: group })
    await goes.forward({ addr: (await named(t, 'b')).address, labels: group })
    const ask = async () => (await world.ask(name)).text
    assert.equal([await ask(), await ask()].sort().join(''), 'ab')
    await goes.close()
    assert.equal([await ask(), await ask(), await ask()].join(''), 'aaa')
    await sdkTunnel(t, world, { labels: group, to: (await named(t, 'c')).address })
    const reported = [await ask(), await ask(), await ask(), await ask()]
    assert.equal(reported.sort().join(''), 'aacc')
    await a.close()
    assert.equal([await ask(), await ask()].join(''), 'cc')
  })

  test('tells a visitor that the service behind an agent is down, and tries no other tunnel', async (t) => {
    const group = freshLabels()
    const backend = await world.toBackend('tunnel_group', { labels: group })
    const { name } = await world.httpsEdge({ routes: [{ backend }] })
    const agent = await ownAgent(t, world)
    await agent.forward({ addr: (await nobody()).address, labels: group })
    for (const version of versions) {
      const { status, code } = await world.ask(name, { version, method: 'POST', body: 'once' })
      assert.deepEqual([status, code], [502, 'ERR_UPSTREAM_UNREACHABLE'])
    }
  })

  test('skips a tunnel whose agent is overloaded, without losing a request', async (t) => {
    const group = freshLabels()
    const backend = await world.toBackend('tunnel_group', { labels: group })
    const { name } = await world.httpsEdge({ routes: [{ backend }] })
    const tcp = await world.tcpEdge({ backend })
    // An agent of the kind whose queues must not fill up, with an application that reads nothing.
    const frozen = new TestAgent({ port: Number(world.platform.agents.split(':')[1]) })
    t.after(() => frozen.leave())
    await frozen.authenticate({
      authtoken: new Secret(world.platform.authtoken),
      userAgent: 'ngrok-javascript/1.7.0 ngrok-rust/0.18.0',
    })
    await frozen.startLabels(group)
    const waiting = Array.from({ length: 64 }, () => connect(tcp.port, '127.0.0.1').on('error', () => {}))
    t.after(() => {
      for (const socket of waiting) socket.destroy()
    })
    await until('most of them wait at the agent', () => frozen.visitors.length > 32)
    // The agent does not accept them in time, so they are turned away.
    await until('it counts as busy', async () => {
      const limit = new Promise<undefined>((resolve) => setTimeout(resolve, 4000, undefined))
      return (await Promise.race([world.ask(name), limit]))?.code === 'ERR_BACKEND_BUSY'
    })

    const agent = await ownAgent(t, world)
    await agent.forward({ addr: (await named(t, 'well')).address, labels: group })
    const answers = Array.from({ length: 8 }, (_, i) =>
      world.ask(name, { version: versions[i % 2] ?? '2', method: 'POST', body: 'x' }),
    )
    for (const { text } of await Promise.all(answers)) assert.equal(text, 'well')
  })
})

describe('a failover', () => {
  const cases: readonly [
    what: string,
    (t: Owner) => Promise<{ backend_id: string }[]>,
    status: number,
    text: string,
  ][] = [
    [
      'past a group without tunnels',
      async () => [
        await world.toBackend('tunnel_group', { labels: freshLabels() }),
        await world.toBackend('http_response', { status_code: 503, body: 'away' }),
      ],
      503,
      'away',
    ],
    [
      'past an address where nothing listens',
      async (t) => [await world.toAddress(await nobody()), await world.toAddress(await named(t, 'second'))],
      200,
      'second',
    ],
    [
      'no further than to a service that answers, though it fails',
      async (t) => [
        await world.toAddress(
          await recorder(t, (_, response) => {
            response.statusCode = 500
            response.end('broken')
          }),
        ),
        await world.toBackend('http_response', { body: 'unused' }),
      ],
      500,
      'broken',
    ],
    [
      'no further than to a service that accepts the request and closes',
      async (t) => [
        await world.toAddress(await tcpUpstream(t, (socket) => socket.on('data', () => socket.destroy()))),
        await world.toBackend('http_response', { body: 'unused' }),
      ],
      502,
      'The service behind this address cannot be reached.\nERR_UPSTREAM_UNREACHABLE\n',
    ],
    [
      'through a nested failover and a weighted backend',
      async (t) => {
        const [away, well] = [await world.toAddress(await nobody()), await world.toAddress(await named(t, 'deep'))]
        const inner = await world.toBackend('failover', { backends: [away.backend_id] })
        const shares = await world.toBackend('weighted', { backends: { [well.backend_id]: 1 } })
        return [inner, shares]
      },
      200,
      'deep',
    ],
    [
      'nowhere when nothing can be reached',
      async () => [await world.toAddress(await nobody())],
      502,
      'The service behind this address cannot be reached.\nERR_UPSTREAM_UNREACHABLE\n',
    ],
  ]
  for (const [what, children, status, text] of cases) {
    test(`goes ${what}`, async (t) => {
      const backends = (await children(t)).map(({ backend_id }) => backend_id)
      const { name } = await world.httpsEdge({ routes: [{ backend: await world.toBackend('failover', { backends }) }] })
      for (const version of versions) {
        const answer = await world.ask(name, { version, method: 'POST', body: 'a body' })
        const shown = answer.text.replace(/^request [0-9a-f]{32}\n/m, '')
        assert.deepEqual([answer.status, shown], [status, text])
      }
    })
  }

  test('serves TCP edges too', async (t) => {
    const well = await world.toAddress(await tcpUpstream(t, (socket) => socket.end('second')))
    const away = await world.toAddress(await nobody())
    const backends = [away.backend_id, well.backend_id]
    const tcp = await world.tcpEdge({ backend: await world.toBackend('failover', { backends }) })
    assert.equal(await readFrom(tcp.port), 'second')
  })
})

describe('a weighted backend', () => {
  const weighted = async (weights: readonly [{ backend_id: string }, number][]) => {
    const backends = Object.fromEntries(weights.map(([{ backend_id }, weight]) => [backend_id, weight]))
    return world.httpsEdge({ routes: [{ backend: await world.toBackend('weighted', { backends }) }] })
  }
  const says = (body: string) => world.toBackend('http_response', { body })

  test('never chooses a backend of weight 0', async () => {
    const { name } = await weighted([
      [await says('a'), 0],
      [await says('b'), 1],
    ])
    for (let i = 0; i < 10; i++)
      for (const version of versions) assert.equal((await world.ask(name, { version })).text, 'b')
  })

  test('has no target when all weights are 0', async () => {
    const { name } = await weighted([[await says('a'), 0]])
    const { status, code } = await world.ask(name)
    assert.deepEqual([status, code], [503, 'ERR_BACKEND_OFFLINE'])
  })

  test('spreads requests in proportion', async () => {
    const { name } = await weighted([
      [await says('a'), 1],
      [await says('b'), 3],
    ])
    const listener = { name, port: world.platform.httpsPort, ca: world.platform.ca }
    const socket = await dialled(listener)
    let b = 0
    const rounds = 600
    for (let i = 0; i < rounds; i++) if ((await askHttp1(socket, listener)).text === 'b') b++
    socket.destroy()
    // 450 on average; less than one run in a million is so far off.
    assert.ok(b > 395 && b < 505, `${b} of ${rounds}`)
  })

  test('spreads requests over those that are online', async (t) => {
    const group = freshLabels()
    const { name } = await weighted([
      [await world.toBackend('tunnel_group', { labels: group }), 10_000],
      [await says('spare'), 1],
    ])
    assert.equal((await world.ask(name)).text, 'spare')
    const agent = await ownAgent(t, world)
    const tunnel = await agent.forward({ addr: (await named(t, 'tunnel')).address, labels: group })
    const reported = new Set([(await world.ask(name)).text, (await world.ask(name)).text])
    assert.ok(reported.has('tunnel'))
    await tunnel.close()
    assert.equal((await world.ask(name)).text, 'spare')
  })
})

describe('a static backend', () => {
  test('is dialled by TCP edges and routes, over TLS if configured', async (t) => {
    const { cert, key } = await tlsIdentity()
    let seen: string | false | null = ''
    const service = await tlsUpstream(t, { cert, key }, (socket) => {
      seen = 'servername' in socket ? (socket.servername as string | false | null) : ''
      socket.end('inside TLS')
    })
    const tcp = await world.tcpEdge({
      backend: await world.toAddress({ address: `localhost:${service.port}` }, { tls: true }),
    })
    assert.equal(await readFrom(tcp.port), 'inside TLS')
    assert.equal(seen, 'localhost')
  })

  test('uses a new address at once, even while connections to the old one are kept', async (t) => {
    const [old, next] = [await named(t, 'old'), await named(t, 'new')]
    const backend = await world.toAddress(old)
    const { name } = await world.httpsEdge({ routes: [{ backend }] })
    const listener = { name, port: world.platform.httpsPort, ca: world.platform.ca }
    const socket = await dialled(listener)
    assert.equal((await askHttp1(socket, listener)).text, 'old')
    await world.api.update(`/backends/static/${backend.backend_id}`, { address: next.address })
    await world.inForce()
    for (const version of versions) assert.equal((await world.ask(name, { version })).text, 'new')
    assert.equal((await askHttp1(socket, listener)).text, 'new')
    socket.destroy()
  })
})
