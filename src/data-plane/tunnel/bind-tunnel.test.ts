import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { makeIdentity } from '../../../test/support/make-certificate.ts'
import { Sealer } from '../../lib/secrets/seal.ts'
import { Secret } from '../../lib/secrets/secret.ts'
import type { BindMessage } from '../../link/wire/messages/bind.ts'
import { streamTypes } from '../../link/wire/stream-types.ts'
import {
  ok,
  refusedWith,
  TestAgentListener,
  type TestAgentListenerOptions,
  until,
} from './testing/test-agent-listener.ts'
import { listed } from './testing/test-control.ts'

const identity = await makeIdentity()

async function startTestListener(options?: TestAgentListenerOptions): Promise<TestAgentListener> {
  const listener = await new TestAgentListener(identity, options).listen()
  after(() => listener.close())
  return listener
}

async function startAgent(options?: TestAgentListenerOptions) {
  const listener = await startTestListener(options)
  return { listener, ...(await listener.online()) }
}

describe('a bind', () => {
  test('without a name gets a random one, and is listed', async () => {
    const { listener, agent, auth } = await startAgent()
    const bound = ok(await agent.bind({ metadata: 'mine', forwardsTo: 'http://localhost:3000' }))
    assert.match(bound.url, /^https:\/\/[a-z]+-[a-z]+-[0-9a-f]{4}\.example\.test$/)
    assert.equal(bound.id, bound.tunnelId)
    assert.equal(bound.opts.Hostname, bound.url.slice('https://'.length))
    const { registry } = listener.tunnels
    const [tunnel] = await listed(registry).tunnels({ limit: 10 })
    assert.deepEqual(
      { ...tunnel, startedAt: '' },
      {
        id: bound.tunnelId,
        sessionId: auth.clientId,
        startedAt: '',
        metadata: 'mine',
        region: 'local',
        forwardsTo: 'http://localhost:3000',
        endpoint: { id: bound.tunnelId.replace('tn_', 'ep_'), proto: 'https', publicUrl: bound.url },
      },
    )
    const [endpoint] = await listed(registry).endpoints({ limit: 10 })
    assert.deepEqual(
      { ...endpoint, createdAt: '', updatedAt: '' },
      {
        id: tunnel?.endpoint?.id,
        region: 'local',
        createdAt: '',
        updatedAt: '',
        publicUrl: bound.url,
        proto: 'https',
        hostport: `${String(bound.opts.Hostname)}:443`,
        type: 'ephemeral',
        name: '',
        description: '',
        metadata: 'mine',
        upstreamUrl: 'http://localhost:3000',
        upstreamProtocol: 'http1',
        tunnelId: bound.tunnelId,
      },
    )
    assert.deepEqual(await listed(registry).tunnel(bound.tunnelId), tunnel)
    assert.deepEqual(await listed(registry).endpoint(endpoint?.id ?? ''), endpoint)
  })

  test('passes all fields to the endpoint', async () => {
    const { listener, agent } = await startAgent()
    const opts = { Domain: 'A.example.com', ProxyProto: 2, IPRestriction: { allow_cidrs: ['10.0.0.0/8'] } }
    const bound = ok(await agent.bind({ proto: 'http', forwardsProto: 'http2', opts }))
    assert.deepEqual(listener.endpoints.served.get('http://a.example.com'), {
      id: bound.tunnelId.replace('tn_', 'ep_'),
      proto: 'http',
      host: 'a.example.com',
      port: undefined,
      place: 'plain:a.example.com',
      isRandom: false,
      isPooled: false,
      tunnel: { kind: 'tunnel', tunnelId: bound.tunnelId, httpVersion: 2, proxyHeader: 2 },
      credentialId: 'cr_test',
      sessionId: listener.registry.liveSessions()[0]?.id,
      opts,
    })
    assert.deepEqual(bound.opts.IPRestriction, opts.IPRestriction)
  })

  test('tells the endpoint whether the address was asked for', async () => {
    const { listener, agent } = await startAgent()
    const isRandom = () => [...listener.endpoints.served.values()].at(-1)?.isRandom
    for (const proto of ['https', 'tcp']) {
      const bound = ok(await agent.bind({ proto }))
      assert.equal(isRandom(), true)
      await agent.unbind(bound.id)
      ok(await agent.bind({ proto, opts: bound.opts, token: bound.token }))
      assert.equal(isRandom(), false)
    }
  })

  test('of a name under the domain of the server, under another, and of a wildcard gets it', async () => {
    const { agent } = await startAgent()
    assert.equal(ok(await agent.bind({ opts: { Subdomain: 'app' } })).url, 'https://app.example.test')
    assert.equal(ok(await agent.bind({ opts: { Domain: 'app.elsewhere.org' } })).url, 'https://app.elsewhere.org')
    assert.equal(ok(await agent.bind({ opts: { Hostname: '*.apps.org' } })).url, 'https://*.apps.org')
  })

  test('of http and https on one name is two tunnels', async () => {
    const { listener, agent } = await startAgent()
    const opts = { Domain: 'app.example.com' }
    const urls = [await agent.bind({ opts }), await agent.bind({ proto: 'http', opts })].map((each) => ok(each).url)
    assert.deepEqual(urls, ['https://app.example.com', 'http://app.example.com'])
    assert.equal(listener.load.tunnels, 2)
  })

  test('of many at once gets many', async () => {
    const { listener, agent } = await startAgent()
    const all = await Promise.all(Array.from({ length: 100 }, () => agent.bind()))
    assert.equal(new Set(all.map((each) => ok(each).url)).size, 100)
    assert.equal(listener.load.tunnels, 100)
  })

  test('of a name that is taken is refused', async () => {
    const { listener, agent } = await startAgent()
    const { agent: other } = await listener.online()
    ok(await other.bind({ opts: { Domain: 'app.example.com' } }))
    assert.equal(refusedWith(await agent.bind({ opts: { Domain: 'APP.example.com' } })), 334)
    await other.leave()
    await until(() => listener.endpoints.addresses.length === 0)
    ok(await agent.bind({ opts: { Domain: 'app.example.com' } }))
  })

  test('of TCP gets a random port of the range, or the one it asks for', async () => {
    const { agent } = await startAgent()
    assert.equal(ok(await agent.bind({ proto: 'tcp', opts: { Addr: ':20003' } })).url, 'tcp://example.test:20003')
    const ports = new Set<string>()
    for (let i = 0; i < 9; i++) {
      const bound = ok(await agent.bind({ proto: 'tcp' }))
      assert.equal(bound.opts.Addr, bound.url.slice('tcp://'.length))
      ports.add(bound.url)
    }
    assert.equal(ports.size, 9)
    assert.equal(refusedWith(await agent.bind({ proto: 'tcp' })), 334)
    assert.equal(refusedWith(await agent.bind({ proto: 'tcp', opts: { Addr: ':20003' } })), 334)
  })

  test('of a random port is judged by the ACL first, even when none is free', async () => {
    const { listener, agent } = await startAgent()
    await Promise.all(Array.from({ length: 10 }, async () => ok(await agent.bind({ proto: 'tcp' }))))
    assert.equal(refusedWith(await agent.bind({ proto: 'tcp' })), 334)
    listener.credentials.restrict('bind:example.test:20001')
    assert.equal(refusedWith(await agent.bind({ proto: 'tcp' })), 356)
  })

  test('of a random port skips those that are taken', async () => {
    const { listener, agent } = await startAgent()
    for (let port = 20_000; port < 20_010; port++) {
      if (port !== 20_006) listener.endpoints.taken.add(`tcp://example.test:${port}`)
    }
    assert.equal(ok(await agent.bind({ proto: 'tcp' })).url, 'tcp://example.test:20006')
  })

  test('gives up after a number of random names', async () => {
    const { listener, agent } = await startAgent()
    listener.endpoints.taken.add('*')
    assert.equal(refusedWith(await agent.bind()), 334)
    assert.equal(listener.endpoints.asked, 100)
  })

  test('whose endpoint fails is refused and logged', async () => {
    const { listener, agent } = await startAgent()
    listener.endpoints.failure = new Error('no more sockets')
    assert.equal(refusedWith(await agent.bind()), 802)
    assert.match(JSON.stringify(listener.logLines('endpoint cannot be opened')), /no more sockets/)
    assert.equal(listener.load.tunnels, 0)
  })

  const refused: Record<string, [change: Partial<BindMessage>, ngrok: number]> = {
    'of no protocol': [{ proto: '' }, 394],
    'of an unknown protocol': [{ proto: 'ssh' }, 332],
    'of a protocol in capitals': [{ proto: 'HTTPS' }, 332],
    'of a bad name': [{ opts: { Domain: '1.21 gigawatts' } }, 326],
    'of a port outside': [{ proto: 'tcp', opts: { Addr: ':22' } }, 307],
    'with an unknown PROXY header': [{ opts: { ProxyProto: 3 } }, 301],
    'with a PROXY header that is no number': [{ opts: { ProxyProto: '1' } }, 301],
    'of an internal endpoint': [{ bindings: ['internal'] }, 301],
    'with long metadata': [{ metadata: 'x'.repeat(4097) }, 301],
    'with a long description': [{ description: 'x'.repeat(256) }, 301],
    'with a long id': [{ id: 'x'.repeat(129) }, 301],
  }
  for (const [name, [change, ngrok]] of Object.entries(refused)) {
    test(`${name} is refused with ${ngrok}, and nothing is opened`, async () => {
      const { listener, agent } = await startAgent()
      assert.equal(refusedWith(await agent.bind(change)), ngrok)
      assert.equal(listener.endpoints.asked, 0)
    })
  }

  test('whose message cannot be read is refused', async () => {
    const { agent } = await startAgent()
    for (const message of [{ Proto: 5 }, { Opts: [] }, { Proto: 'https', Extra: { Bindings: 'public' } }]) {
      const { Error: text } = await agent.call(streamTypes.bind, message)
      assert.match(String(text), /\n\nERR_NGROK_801\n$/)
    }
  })

  test('beyond a thousand tunnels is refused', async () => {
    const { agent } = await startAgent()
    for (let i = 0; i < 10; i++) {
      const some = await Promise.all(Array.from({ length: 100 }, (_, at) => agent.startLabels({ n: `${i}-${at}` })))
      some.forEach(ok)
    }
    assert.equal(refusedWith(await agent.bind()), 324)
    assert.equal(refusedWith(await agent.startLabels({ n: 'x' })), 324)
  })
})

describe('an ACL', () => {
  const address = (host: string) => ({ proto: 'tcp', opts: { Addr: host } })
  const rows: [acl: string[], change: Partial<BindMessage>, ngrok: number | 'ok'][] = [
    [[], {}, 'ok'],
    [['*'], {}, 'ok'],
    [['bind:*'], { proto: 'tcp' }, 'ok'],
    [['bind:*.d.com'], { opts: { Domain: 'x.d.com' } }, 'ok'],
    [['bind:*.d.com'], { opts: { Domain: 'X.D.com' } }, 'ok'],
    [['bind:*.d.com'], { opts: { Domain: '*.d.com' } }, 'ok'],
    [['bind:*.d.com'], { opts: { Domain: 'd.com' } }, 316],
    [['bind:*.d.com'], { proto: 'tcp' }, 356],
    [['bind:*.d.com'], {}, 316],
    [['bind:*.example.test'], {}, 'ok'],
    [['bind:*.example.test'], { opts: { Subdomain: 'app' } }, 'ok'],
    [['bind:*.example.test'], { proto: 'tcp' }, 356],
    [['bind:example.test:20001'], address('example.test:20001'), 'ok'],
    [['bind:example.test:20001'], address(':20001'), 'ok'],
    [['bind:example.test:20001'], address('example.test:20002'), 308],
    [['bind:example.test:20001'], address('other.test:20001'), 308],
    [['bind:example.test:20001'], { proto: 'tcp' }, 356],
    [['bind:app=*'], { opts: { Domain: 'x.d.com' } }, 316],
  ]
  for (const [acl, change, expected] of rows) {
    const what = `${change.proto ?? 'https'} ${JSON.stringify(change.opts ?? {})}`
    test(`of ${JSON.stringify(acl)} answers ${what} with ${expected}`, async () => {
      const { listener, agent } = await startAgent()
      listener.credentials.restrict(...acl)
      const outcome = await agent.bind(change)
      assert.equal('ngrok' in outcome ? outcome.ngrok : 'ok', expected)
      if (expected !== 'ok') assert.equal(listener.endpoints.asked, 0)
    })
  }

  test('applies to the next bind as it is then; online tunnels stay', async () => {
    const { listener, agent } = await startAgent()
    const bound = ok(await agent.bind({ opts: { Domain: 'x.d.com' } }))
    listener.credentials.restrict('bind:y.d.com')
    assert.equal(refusedWith(await agent.bind({ opts: { Domain: 'z.d.com' } })), 316)
    ok(await agent.bind({ opts: { Domain: 'y.d.com' } }))
    assert.equal((await listed(listener.registry).tunnel(bound.tunnelId))?.id, bound.tunnelId)
  })
})

describe('a token', () => {
  test('gives an agent that lost its connection the same name, port, ids and start', async () => {
    const clock = { now: 1_000_000_000 }
    const { listener, agent, auth } = await startAgent({ now: () => clock.now })
    const bounds = [ok(await agent.bind()), ok(await agent.bind({ proto: 'tcp' }))]
    const before = await listed(listener.registry).tunnels({ limit: 10 })
    await agent.leave()
    await until(() => listener.load.sessions === 0)
    clock.now += 60_000
    const { agent: again } = await listener.online({ clientId: auth.clientId, cookie: auth.cookie })
    for (const { id, proto, opts, token, url } of bounds) {
      const bound = ok(await again.bind({ id, proto, opts, token }))
      assert.deepEqual([bound.id, bound.url, bound.tunnelId], [id, url, id])
    }
    assert.deepEqual(await listed(listener.registry).tunnels({ limit: 10 }), before)
  })

  test('works after a restart of the server, and when the agent sends nothing else', async () => {
    const seal = new Sealer(randomBytes(32))
    const first = await startAgent({ seal })
    const [https, tcp] = [ok(await first.agent.bind()), ok(await first.agent.bind({ proto: 'tcp' }))]
    await first.listener.close()
    const { agent } = await startAgent({ seal })
    assert.equal(ok(await agent.bind({ token: https.token })).url, https.url)
    const bound = ok(await agent.bind({ id: 'my-own-id', proto: 'tcp', token: tcp.token }))
    assert.deepEqual([bound.id, bound.url, bound.tunnelId], ['my-own-id', tcp.url, tcp.tunnelId])
  })

  test('of a name that another agent has by now is refused', async () => {
    const { listener, agent } = await startAgent()
    const bound = ok(await agent.bind())
    await agent.unbind(bound.id)
    const { agent: other } = await listener.online()
    ok(await other.bind({ opts: { Domain: String(bound.opts.Hostname) } }))
    assert.equal(refusedWith(await agent.bind({ id: bound.id, opts: bound.opts, token: bound.token })), 334)
    assert.equal(refusedWith(await agent.bind({ token: bound.token })), 334)
  })

  test('that is invalid counts as none, and the id that the agent chose is kept', async () => {
    const { agent } = await startAgent()
    const bound = ok(
      await agent.bind({ id: 'former', token: new Secret('nonsense'), opts: { Domain: 'a.example.com' } }),
    )
    assert.equal(bound.id, 'former')
    assert.match(bound.tunnelId, /^tn_[0-9A-Za-z]{27}$/)
  })

  test('of another credential gives neither its name nor its id', async () => {
    const { listener, agent } = await startAgent()
    const bound = ok(await agent.bind())
    await agent.leave()
    await until(() => listener.load.tunnels === 0)
    listener.credentials.all.set('b'.repeat(40), { id: 'cr_other', acl: [] })
    const { agent: other } = await listener.online({ authtoken: new Secret('b'.repeat(40)) })
    const taken = ok(await other.bind({ token: bound.token }))
    assert.notEqual(taken.url, bound.url)
    assert.notEqual(taken.tunnelId, bound.tunnelId)
  })

  test('does not give an id to two tunnels', async () => {
    const { listener, agent } = await startAgent()
    const bound = ok(await agent.bind())
    // The name is free again for the endpoints, but its tunnel is still online.
    const [[url, request] = ['', undefined]] = listener.endpoints.served
    listener.endpoints.served.delete(url)
    const twin = ok(await agent.bind({ token: bound.token }))
    assert.equal(twin.url, bound.url)
    assert.notEqual(twin.tunnelId, bound.tunnelId)
    await agent.unbind(twin.id)
    if (request) listener.endpoints.served.set(url, request)
  })

  test('needs an ACL that still covers its address', async () => {
    const { listener, agent } = await startAgent()
    const bound = ok(await agent.bind())
    await agent.unbind(bound.id)
    listener.credentials.restrict('bind:other.com')
    assert.equal(refusedWith(await agent.bind({ id: bound.id, opts: bound.opts, token: bound.token })), 316)
  })
})

test('a random port is not taken from an agent that has just lost its connection', async () => {
  const { listener, agent, auth } = await startAgent()
  const bound = ok(await agent.bind({ proto: 'tcp' }))
  await agent.leave()
  await until(() => listener.load.sessions === 0)
  const { agent: other } = await listener.online()
  for (let i = 0; i < 9; i++) assert.notEqual(ok(await other.bind({ proto: 'tcp' })).url, bound.url)
  const { agent: again } = await listener.online({ clientId: auth.clientId, cookie: auth.cookie })
  assert.equal(
    ok(await again.bind({ id: bound.id, proto: 'tcp', opts: bound.opts, token: bound.token })).url,
    bound.url,
  )
})

test('two tunnels of a session cannot have the same id', async () => {
  const { listener, agent } = await startAgent()
  const both = await Promise.all([agent.bind({ id: 'mine' }), agent.bind({ id: 'mine' })])
  assert.equal(both.filter((each) => 'ngrok' in each).length, 1)
  assert.equal(refusedWith(await agent.bind({ id: 'mine' })), 301)
  assert.equal(listener.load.tunnels, 1)
  await agent.unbind('mine')
  ok(await agent.bind({ id: 'mine' }))
})
