/** Changes during traffic: in force at once for new visitors, and without effect on open connections. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, type TestContext, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import type { TLSSocket } from 'node:tls'
import { eachStore } from '../support/databases.ts'
import { tlsIdentity } from '../support/tls-identity.ts'
import { until } from '../support/until.ts'
import { tlsUpstream } from '../support/upstream.ts'
import { isAlive, type Listener, listener, recorder, shouts, timeout } from './edges/upstreams.ts'
import { askHttp1, askHttp2, dialled, type EdgeEntry, http2Over, versions } from './edges/visitor.ts'
import { MARK, World } from './edges/world.ts'

const listenerOf = (world: World, name: string): EdgeEntry => ({
  name,
  port: world.platform.httpsPort,
  ca: world.platform.ca,
})

eachStore((store) => {
  describe('a write', () => {
    let world: World
    before(async () => {
      world = await World.start({ databaseUrl: await store.url() })
    })
    after(() => world.stop())

    test('is in force at once, and no other connection is dropped', async (t) => {
      const bystanders = await watch(world, t)
      const [old, next] = [await named(t, 'old'), await named(t, 'new')]
      const policy = await world.ipPolicy({ allow: ['127.0.0.0/8'] })
      const edge = await world.httpsTo(old)
      const [route] = edge.routes
      assert.ok(route)
      const listenerName = listenerOf(world, edge.name)
      const [socket, second] = [await dialled(listenerName), await dialled(listenerName, { version: '2' })]
      const session = http2Over(second, listenerName)
      const spare = await world.toAddress(next)
      const port = world.tcpPort()
      const shouting = await world.toAddress(await shouts(t))

      const seen = async (): Promise<string> => {
        const answers = [
          await askHttp1(socket, listenerName),
          await askHttp2(session, listenerName),
          await world.ask(edge.name),
        ]
        return [...new Set(answers.map(({ code, text }) => code ?? text))].join()
      }
      const isOpen = async (): Promise<string> => {
        const visitor = connect(port, '127.0.0.1').on('error', () => {})
        const alive = await isAlive(visitor)
        visitor.destroy()
        return String(alive)
      }
      const gone = async () => (await world.ask(edge.name, { tls: { rejectUnauthorized: false } })).code ?? 'served'
      const tcp = await world.api.create('/edges/tcp', { backend: shouting })
      const rule = { cidr: '127.0.0.1/32', action: 'deny', ip_policy_id: policy }
      const byRule = { inbound: [{ actions: [said('by a rule')] }] }
      const writes: readonly [what: string, call: string, body: unknown, look: () => Promise<string>, sees: string][] =
        [
          ['another backend', `PUT ${route.path}/backend`, spare, seen, 'new'],
          ['a filter', `PUT ${route.path}/user_agent_filter`, { deny: ['x'] }, seen, 'ERR_USER_AGENT_REFUSED'],
          ['no filter', `DELETE ${route.path}/user_agent_filter`, undefined, seen, 'new'],
          ['a policy', `PUT ${route.path}/policy`, byRule, seen, 'by a rule'],
          ['without it', `DELETE ${route.path}/policy`, undefined, seen, 'new'],
          ['an IP restriction', `PUT ${route.path}/ip_restriction`, { ip_policy_ids: [policy] }, seen, 'new'],
          ['a rule of its policy', 'POST /ip_policy_rules', rule, seen, 'ERR_IP_REFUSED'],
          ['no restriction', `DELETE ${route.path}/ip_restriction`, undefined, seen, 'new'],
          ['a longer route', `PATCH ${route.path}`, { match: '/deeper' }, seen, 'ERR_NO_ROUTE'],
          ['the route as it was', `PATCH ${route.path}`, { match: '/' }, seen, 'new'],
          ['no name', `PATCH ${edge.path}`, { hostports: [] }, gone, 'ERR_ENDPOINT_OFFLINE'],
          ['a TCP port', `PATCH /edges/tcp/${tcp.id}`, { hostports: [`a:${port}`] }, isOpen, 'true'],
          ['no TCP edge', `DELETE /edges/tcp/${tcp.id}`, undefined, isOpen, 'false'],
        ]
      const pending: string[] = []
      for (const [what, call, body, look, sees] of writes) {
        const [method = '', path = ''] = call.split(' ')
        const { status, headers, text } = await world.api.send(method, path, { body })
        assert.ok(status < 300, `${what}: ${text}`)
        const isInForce = headers.get('service-in-force') === 'yes'
        if (isInForce) assert.equal(await look(), sees, `${what} was not in force when the write was answered (D100)`)
        else {
          // A busy machine may need more than the second for which a write waits.
          assert.equal(headers.get('service-in-force'), 'pending')
          pending.push(what)
          await until(what, async () => (await look()) === sees)
        }
      }
      t.diagnostic(`pending: ${pending.join(', ') || 'none'}`)
      assert.ok(pending.length < writes.length, 'no write was in force when it was answered')
      session.destroy()
      socket.destroy()
      await bystanders.end()
    })
  })
})

const named = (owner: Parameters<typeof recorder>[0], name: string) =>
  recorder(owner, (_, response) => response.end(name))

/** Pause between two rounds of bystanders, in milliseconds: the processor time that they use delays changes. */
const BETWEEN_MS = 10

/** Visitors of other edges, which are connected all the time and must not notice anything. */
async function watch(world: World, t: TestContext): Promise<{ end(): Promise<void> }> {
  const service = await shouts(t)
  const backend = await world.toAddress(service)
  const tcp = await world.tcpEdge({ backend })
  const tls = await world.tlsEdge({ backend, tls_termination: {} })
  const web = await world.httpsTo(await named(t, 'here'))
  const listenerName = listenerOf(world, web.name)
  const raw: Socket[] = [connect(tcp.port, '127.0.0.1'), await dialled(listenerOf(world, tls.name))]
  const [kept, second] = [await dialled(listenerName), await dialled(listenerName, { version: '2' })]
  const session = http2Over(second, listenerName)
  let isOver = false
  let rounds = 0
  const running = (async () => {
    while (!isOver) {
      for (const socket of raw) assert.ok(await isAlive(socket), 'a stream of a bystander is gone')
      const answers = [
        await askHttp1(kept, listenerName),
        await askHttp2(session, listenerName),
        await world.ask(web.name),
      ]
      for (const { text } of answers) assert.equal(text, 'here')
      rounds++
      await pause(BETWEEN_MS)
    }
  })()
  // Awaited at the end; until then a failure must not end the process.
  running.catch(() => {})
  return {
    async end() {
      isOver = true
      await running
      assert.ok(rounds > 3, 'the bystanders made too few requests')
      session.destroy()
      for (const socket of [...raw, kept]) socket.destroy()
    },
  }
}

describe('an open connection', () => {
  const DRAIN_MS = 1500
  let world: World
  let service: Listener
  /** Each opens a stream that answers in capitals through its own edge, and returns it with the path of that edge. */
  let streams: Record<string, () => Promise<{ socket: Socket; path: string; module: string }>>
  before(async () => {
    world = await World.start({ flags: { 'drain-timeout': `${DRAIN_MS}ms` } })
    service = await shouts(world)
    const identity = await tlsIdentity(['through.edge.test'])
    const secured = await tlsUpstream(world, { cert: identity.cert, key: identity.key }, (socket) => {
      socket.on('data', (chunk) => socket.write(chunk.toString('latin1').toUpperCase()))
    })
    streams = {
      'a TCP edge': async () => {
        const { port, path } = await world.tcpEdge({ backend: await world.toAddress(service) })
        const socket = connect(port, '127.0.0.1')
        await once(socket, 'connect')
        return { socket, path, module: path }
      },
      'a TLS edge that ends TLS': async () => {
        const { name, path } = await world.tlsEdge({ backend: await world.toAddress(service), tls_termination: {} })
        return { socket: await dialled(listenerOf(world, name)), path, module: path }
      },
      'a TLS edge that passes it through': async () => {
        const { path } = await world.tlsEdge({ backend: await world.toAddress(secured) }, ['through.edge.test'])
        const tls = { ca: identity.ca }
        return { socket: await dialled(listenerOf(world, 'through.edge.test'), { tls }), path, module: path }
      },
      'a route, after an upgrade,': async () => {
        const upgrading = await listener(world, (socket) => {
          socket.once('data', () => {
            socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: shout\r\n\r\n')
            socket.on('data', (chunk) => socket.write(chunk.toString('latin1').toUpperCase()))
          })
          socket.on('end', () => socket.end())
        })
        const { name, path, routes } = await world.httpsTo(upgrading)
        const socket = await dialled(listenerOf(world, name))
        socket.write(`GET / HTTP/1.1\r\nHost: ${name}\r\nConnection: Upgrade\r\nUpgrade: shout\r\n\r\n`)
        assert.match(String((await once(socket, 'data'))[0]), /^HTTP\/1\.1 101 /)
        return { socket, path, module: routes[0]?.path ?? '' }
      },
    }
  })
  after(() => world.stop())

  for (const what of [
    'a TCP edge',
    'a TLS edge that ends TLS',
    'a TLS edge that passes it through',
    'a route, after an upgrade,',
  ]) {
    test(`on ${what} survives a change`, async () => {
      const { socket, path, module } = (await streams[what]?.()) ?? assert.fail()
      assert.ok(await isAlive(socket))
      // One that no longer lets it in ends it: restrictions-added.test.ts.
      const everybody = await world.ipPolicy({ allow: ['127.0.0.0/8'] })
      await world.api.put(`${module}/ip_restriction`, { ip_policy_ids: [everybody] })
      await world.inForce()
      assert.ok(await isAlive(socket), 'a rule that lets it in ends nothing')
      await world.api.delete(`${module}/backend`)
      await world.inForce()
      assert.ok(await isAlive(socket), 'and so does a backend')
      await world.api.update(path, { hostports: [] })
      await world.inForce()
      assert.ok(await isAlive(socket), 'and so does a name')
      await world.api.delete(path)
      socket.destroy()
    })

    test(`on ${what} ends when the edge is deleted and the drain time is over`, async () => {
      const { socket, path } = (await streams[what]?.()) ?? assert.fail()
      assert.ok(await isAlive(socket))
      const over = once(socket, 'close')
      socket.on('error', () => {})
      const started = performance.now()
      await world.api.delete(path)
      await world.inForce()
      assert.ok(await isAlive(socket), 'it may go on during the drain time')
      await Promise.race([over, timeout(DRAIN_MS + 5000, 'it lives on')])
      assert.ok(performance.now() - started > DRAIN_MS * 0.9, 'it may go on for the whole drain time')
      socket.destroy()
    })
  }

  for (const version of versions) {
    test(`with an endless answer over HTTP/${version} ends when the edge is deleted and the drain time is over`, async (t) => {
      const endless = await recorder(t, (_, response) => void response.write('first'))
      const { name, path } = await world.httpsTo(endless)
      const asked = world.ask(name, { version })
      await until('the service was asked', () => endless.seen.length === 1)
      await world.api.delete(path)
      await assert.rejects(Promise.race([asked, timeout(DRAIN_MS + 5000, 'it lives on')]), (error: Error) => {
        return !error.message.includes('it lives on')
      })
    })

    test(`with an answer under way over HTTP/${version} receives all of it, whatever changes`, async (t) => {
      let finish = () => {}
      const slow = await recorder(t, (_, response) => {
        response.write('first ')
        finish = () => response.end('last')
      })
      const { name, path, routes } = await world.httpsTo(slow)
      const asked = world.ask(name, { version })
      await until('the service was asked', () => slow.seen.length === 1)
      await world.api.put(`${routes[0]?.path}/user_agent_filter`, { deny: ['.'] })
      await world.api.delete(`${routes[0]?.path}/backend`)
      await world.inForce()
      await world.api.delete(routes[0]?.path ?? '')
      await world.api.delete(path)
      await world.inForce()
      finish()
      const { status, text } = await asked
      assert.deepEqual([status, text], [200, 'first last'])
    })
  }

  test('does not keep the port of a deleted TCP edge open for new connections', async () => {
    const { port, path } = await world.tcpEdge({ backend: await world.toAddress(service) })
    const socket = connect(port, '127.0.0.1')
    assert.ok(await isAlive(socket))
    await world.api.delete(path)
    await world.inForce()
    const late = connect(port, '127.0.0.1')
    const [error] = (await once(late, 'error')) as [NodeJS.ErrnoException]
    assert.equal(error.code, 'ECONNREFUSED')
    socket.destroy()
  })
})

test('a port that is taken is logged, and no other edge is affected', async (t) => {
  const world = await World.start()
  t.after(() => world.stop())
  const service = await shouts(world)
  const port = world.tcpPort()
  const squatter = createServer((socket) => socket.end('mine'))
  squatter.listen(port, '127.0.0.1')
  await once(squatter, 'listening')
  t.after(() => squatter.close())
  const backend = await world.toAddress(service)
  const taken = await world.tcpEdge({ backend }, port)
  const free = await world.tcpEdge({ backend })
  const socket = connect(free.port, '127.0.0.1')
  assert.ok(await isAlive(socket))
  socket.destroy()
  const [line] = world.logged('port of an edge cannot be opened')
  assert.deepEqual([line?.edge, line?.port], [taken.id, port])
})

test('edges are served again after a restart', async (t) => {
  const dataDir = await mkdtemp(join(tmpdir(), 'postern-edges-'))
  t.after(() => rm(dataDir, { recursive: true, force: true }))
  const first = await World.start({ dataDir })
  const service = await shouts(t)
  const web = await named(t, 'here')
  const backend = await first.toAddress(service)
  const tcp = await first.tcpEdge({ backend })
  const tls = await first.tlsEdge({ backend, tls_termination: {} })
  const https = await first.httpsTo(web, { user_agent_filter: { deny: ['bad'] } })
  await first.stop()

  const again = await World.startAgain(first, { dataDir })
  t.after(() => again.stop())
  const socket = connect(tcp.port, '127.0.0.1')
  const secured: TLSSocket = await dialled(listenerOf(again, tls.name))
  assert.deepEqual([await isAlive(socket), await isAlive(secured)], [true, true])
  socket.destroy()
  secured.destroy()
  assert.equal((await again.ask(https.name, { headers: { 'user-agent': 'x' } })).text, 'here')
  assert.equal((await again.ask(https.name, { headers: { 'user-agent': 'bad' } })).status, 403)
  assert.equal((await again.ask(MARK)).status, 200)
})

/** An action that answers. */
function said(content: string) {
  return { type: 'custom-response', config: { status_code: 403, content } }
}
