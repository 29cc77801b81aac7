/** A connection that was opened while its name was offline works once the name is online, and bypasses no guard. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { ClientHttp2Session } from 'node:http2'
import { Agent, request } from 'node:https'
import { buffer } from 'node:stream/consumers'
import { after, before, describe, test } from 'node:test'
import type { ConnectionOptions, TLSSocket } from 'node:tls'
import { until } from '../support/until.ts'
import type { Owner } from '../support/upstream.ts'
import { ownAgent } from './edges/agents.ts'
import { authority } from './edges/identities.ts'
import { type Recorder, recorder } from './edges/upstreams.ts'
import { type Answer, type Ask, askHttp1, askHttp2, dialled, http2Over, versions } from './edges/visitor.ts'
import { World } from './edges/world.ts'

/** Names below this domain have a certificate while nothing serves them. */
const DOMAIN = 'outage.test'

let world: World
let service: Recorder
let ca: string
before(async () => {
  // An idle connection is closed after the drain time of a deleted edge: long enough for the next edge to come first.
  world = await World.start({ flags: { domain: DOMAIN, 'drain-timeout': '5s' } })
  service = await recorder(world)
  const { certificatePem } = await authority('authority')
  ca = (await world.api.create('/certificate_authorities', { ca_pem: certificatePem })).id
})
after(() => world.stop())

interface Open {
  readonly socket: TLSSocket
  readonly session: ClientHttp2Session | undefined
  ask(about?: Ask): Promise<Answer>
}

/** A connection after its handshake; the name need not be served. */
async function connectTo(name: string, version: '1.1' | '2', tls: ConnectionOptions = {}): Promise<Open> {
  const listener = { name, port: world.platform.httpsPort, ca: world.platform.ca }
  // A name that is not served gets the certificate of the server's own domain.
  const socket = await dialled(listener, { version, tls: { rejectUnauthorized: false, ...tls } })
  const session = version === '2' ? http2Over(socket, listener) : undefined
  return {
    socket,
    session,
    ask: (about) => (session ? askHttp2(session, listener, about) : askHttp1(socket, listener, about)),
  }
}

function end({ socket, session }: Open): void {
  session?.destroy()
  socket.destroy()
}

for (const version of versions) {
  describe(`over HTTP/${version}, a connection opened while its name was offline`, () => {
    test('serves the name once it is online, and again after each outage', async () => {
      const name = world.name()
      const open = await connectTo(name, version)
      assert.deepEqual([(await open.ask()).status, (await open.ask()).status], [404, 404])
      for (let outage = 0; outage < 3; outage++) {
        const backend = await world.toAddress(service)
        const edge = await world.httpsEdge({ names: [name], routes: [{ backend }] })
        const online = await open.ask()
        assert.deepEqual([online.status, online.text], [200, 'hello'])
        await world.api.delete(edge.path)
        await world.inForce()
        const offline = await open.ask()
        assert.deepEqual([offline.status, offline.code], [404, 'ERR_ENDPOINT_OFFLINE'])
      }
      end(open)
    })

    const guards: Record<string, { modules: () => Record<string, object>; tls?: ConnectionOptions }> = {
      'mutual TLS': { modules: () => ({ mutual_tls: { certificate_authority_ids: [ca] } }) },
      'a higher TLS version': {
        modules: () => ({ tls_termination: { min_version: '1.3' } }),
        tls: { maxVersion: 'TLSv1.2' },
      },
    }
    for (const [guard, { modules, tls }] of Object.entries(guards)) {
      test(`does not bypass ${guard}: it is refused and closed`, async () => {
        const name = world.name()
        const open = await connectTo(name, version, tls)
        assert.equal((await open.ask()).status, 404)
        const isGone = open.session && once(open.session, 'goaway')
        await world.httpsEdge({
          names: [name],
          modules: modules(),
          routes: [{ backend: await world.toAddress(service) }],
        })
        const before = service.seen.length
        const answer = await open.ask()
        assert.deepEqual([answer.status, answer.code], [421, 'ERR_MISDIRECTED'])
        if (version === '1.1') assert.equal(answer.headers.connection, 'close')
        else assert.equal((await isGone)?.[0], 0)
        if (!open.socket.closed) await once(open.socket, 'close')
        assert.equal(service.seen.length, before)
      })
    }

    test('is served by an edge whose TLS requirements it meets', async () => {
      const name = world.name()
      const open = await connectTo(name, version)
      assert.equal((await open.ask()).status, 404)
      const modules = { tls_termination: { min_version: '1.3' } }
      await world.httpsEdge({ names: [name], modules, routes: [{ backend: await world.toAddress(service) }] })
      assert.equal((await open.ask()).status, 200)
      end(open)
    })

    test('does not bypass a guard that the edge gets later', async () => {
      const name = world.name()
      const open = await connectTo(name, version)
      assert.equal((await open.ask()).status, 404)
      const edge = await world.httpsEdge({ names: [name], routes: [{ backend: await world.toAddress(service) }] })
      assert.equal((await open.ask()).status, 200)
      await world.api.put(`${edge.path}/mutual_tls`, { certificate_authority_ids: [ca] })
      await world.inForce()
      const before = service.seen.length
      assert.equal((await open.ask()).status, 421)
      assert.equal(service.seen.length, before)
      end(open)
    })

    test('does not reach another name, nor a TLS edge of its own name', async () => {
      const name = world.name()
      const open = await connectTo(name, version)
      const backend = await world.toAddress(service)
      const other = await world.httpsEdge({ routes: [{ backend }] })
      const before = service.seen.length
      assert.equal((await open.ask({ host: other.name })).status, 421)
      const again = await connectTo(name, version)
      assert.equal((await again.ask()).status, 404)
      await world.tlsEdge({ backend }, [name])
      assert.equal((await again.ask()).status, 421)
      assert.equal(service.seen.length, before)
      end(open)
      end(again)
    })

    test('ends when the edge that it reached is deleted', async (t) => {
      const name = world.name()
      const endless = await recorder(t, (_, response) => void response.write('begun'))
      const open = await connectTo(name, version)
      assert.equal((await open.ask()).status, 404)
      const edge = await world.httpsEdge({ names: [name], routes: [{ backend: await world.toAddress(endless) }] })
      const cut = assert.rejects(open.ask())
      await until('the answer has begun', () => endless.seen.length === 1)
      await world.api.delete(edge.path)
      await world.inForce()
      // Even while the connection carries another request.
      if (version === '2') assert.equal((await open.ask()).status, 404)
      await cut
      end(open)
    })
  })
}

test('over HTTP/1.1, 421 always ends the connection', async () => {
  const backend = await world.toAddress(service)
  const [one, other] = [
    await world.httpsEdge({ routes: [{ backend }] }),
    await world.httpsEdge({ routes: [{ backend }] }),
  ]
  const open = await connectTo(one.name, '1.1')
  const { status, headers } = await open.ask({ host: other.name })
  assert.deepEqual([status, headers.connection], [421, 'close'])
  if (!open.socket.closed) await once(open.socket, 'close')
})

describe('a poller that keeps its connection is served again after its tunnel was restarted', () => {
  /** Polls while a tunnel comes and goes. */
  async function restart(owner: Owner, name: string, poll: () => Promise<number>): Promise<void> {
    assert.equal(await poll(), 404)
    for (let restarts = 0; restarts < 3; restarts++) {
      const agent = await ownAgent(owner, world)
      await agent.forward({ addr: service.address, domain: name })
      assert.deepEqual([await poll(), await poll()], [200, 200])
      await agent.close()
      await until('the tunnel is offline', async () => (await poll()) === 404)
    }
  }

  test('over HTTP/1.1', async (t) => {
    const name = `polled.${DOMAIN}`
    const keeping = new Agent({ keepAlive: true, maxSockets: 1 })
    t.after(() => keeping.destroy())
    const sockets = new Set<unknown>()
    await restart(t, name, async () => {
      const to = { host: '127.0.0.1', port: world.platform.httpsPort, servername: name, agent: keeping }
      const asking = request({ ...to, ca: world.platform.ca, headers: { host: name } })
      asking.on('socket', (socket) => sockets.add(socket)).end()
      const [response] = (await once(asking, 'response')) as [IncomingMessage]
      await buffer(response)
      return response.statusCode ?? 0
    })
    assert.equal(sockets.size, 1)
  })

  test('over HTTP/2', async (t) => {
    const name = `polled-too.${DOMAIN}`
    const open = await connectTo(name, '2')
    t.after(() => end(open))
    await restart(t, name, async () => (await open.ask()).status)
    assert.equal(open.session?.closed, false)
  })
})
