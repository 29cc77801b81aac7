/** Pools: several agents behind one address, at one node with one data plane and with two. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import ngrok from '@ngrok/ngrok'
import { type AgentFault, connect, type TunnelOptions } from '../../src/agent/library.ts'
import { type Platform, startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { httpUpstream, type Owner, tcpUpstream } from '../support/upstream.ts'
import { dialTcp, visit } from '../support/visitor.ts'

for (const planeCount of [1, 2]) {
  describe(`a pool at ${planeCount} data plane${planeCount === 1 ? '' : 's'}`, () => {
    let platform: Platform
    let names = 0
    before(async () => {
      platform = await startPlatform({ planeCount, flags: { 'drain-timeout': '1s' } })
    })
    after(() => platform.stop())

    const agent = async (owner: Owner, authtoken = platform.authtoken) => {
      const connection = await connect({ server: platform.agents, ca: platform.ca, authtoken })
      owner.after(() => connection.close())
      return connection
    }
    const service = (owner: Owner, name: string) => httpUpstream(owner, (_, response) => response.end(name))
    /** Starts a separate agent for a service that answers its name. */
    const member = async (owner: Owner, name: string, options: TunnelOptions, authtoken?: string) => {
      const connection = await agent(owner, authtoken)
      const { address } = await service(owner, name)
      const tunnel = await connection.forward({ pooling: true, ...options, addr: address })
      return { connection, tunnel }
    }
    const freshName = () => `pool${++names}.pools.test`
    const at = (domain: string) => `https://${domain}:${platform.httpsPort}/`
    /** How often each member answered. */
    const counted = async (domain: string, times: number) => {
      const answers: Record<string, number> = {}
      for (let i = 0; i < times; i++) {
        const { status, text } = await visit(at(domain), platform)
        assert.equal(status, 200, text)
        answers[text] = (answers[text] ?? 0) + 1
      }
      return answers
    }

    test('serves its members evenly, and each is listed', async (t) => {
      const domain = freshName()
      const members = []
      for (const name of ['a', 'b', 'c']) members.push(await member(t, name, { domain }))
      assert.equal(new Set(members.map(({ tunnel }) => tunnel.url)).size, 1)
      const answers = await counted(domain, 30)
      assert.deepEqual(Object.keys(answers).toSorted(), ['a', 'b', 'c'])
      // Each plane takes turns by itself.
      for (const times of Object.values(answers)) assert.ok(Math.abs(times - 10) <= planeCount, JSON.stringify(answers))
      const { endpoints } = await platform.admin.get('/endpoints')
      const listed = endpoints.filter(({ hostport }: { hostport: string }) => hostport.startsWith(`${domain}:`))
      assert.equal(listed.length, 3)
      assert.equal(new Set(listed.map(({ id }: { id: string }) => id)).size, 3)
      for (const each of listed) {
        assert.deepEqual(each.bindings, ['public'])
        assert.deepEqual([each.pooling_enabled, each.upstream_protocol, each.traffic_policy], [true, 'http1', ''])
      }
    })

    test('goes on without a member that stops, and closes with the last', async (t) => {
      const domain = freshName()
      const [a, b] = [await member(t, 'a', { domain }), await member(t, 'b', { domain })]
      await a.connection.close()
      await until('the other serves alone', async () => (await counted(domain, 6)).b === 6)
      await b.tunnel.close()
      await until('the address is closed', async () => {
        const answer = await visit(at(domain), platform).catch(() => undefined)
        return answer?.status !== 200
      })
      const c = await member(t, 'c', { domain, basic_auth: ['ada:engine-no-1'] })
      assert.equal((await visit(at(domain), platform)).status, 401)
      await c.tunnel.close()
    })

    test('gives no visitor an error while members come and go', async (t) => {
      const domain = freshName()
      await member(t, 'stays', { domain })
      let isStopped = false
      const visits = (async () => {
        while (!isStopped) await counted(domain, 1)
      })()
      for (let i = 0; i < 5; i++) {
        const { connection } = await member(t, 'goes', { domain })
        await counted(domain, 3)
        await connection.close()
      }
      isStopped = true
      await visits
    })

    test('has two tunnels of one agent', async (t) => {
      const domain = freshName()
      const connection = await agent(t)
      for (const name of ['a', 'b']) {
        await connection.forward({ addr: (await service(t, name)).address, domain, pooling: true })
      }
      assert.deepEqual(Object.keys(await counted(domain, 8)).toSorted(), ['a', 'b'])
    })

    test('shares a TCP port', async (t) => {
      const connection = await agent(t)
      const say = (name: string) => tcpUpstream(t, (socket) => socket.end(name))
      const first = await connection.forward({ addr: (await say('a')).address, proto: 'tcp', pooling: true })
      const second = await agent(t)
      const shared = { url: first.url, proto: 'tcp', pooling: true } as const
      const { url } = await second.forward({ addr: (await say('b')).address, ...shared })
      assert.equal(url, first.url)
      const heard = new Set<string>()
      await until('both were reached', async () => {
        const socket = await dialTcp(`tcp://127.0.0.1:${new URL(url).port}`)
        heard.add(await new Promise((resolve) => socket.once('data', (bytes) => resolve(String(bytes)))))
        socket.destroy()
        return heard.size === 2
      })
      // A port that the server chooses is never one that is in use.
      const third = await (await agent(t)).forward({ addr: (await say('c')).address, proto: 'tcp', pooling: true })
      assert.notEqual(third.url, url)
    })

    test('shares a TLS name, but not with HTTPS', async (t) => {
      const domain = freshName()
      const pooled = { domain, proto: 'tls', pooling: true } as const
      await (await agent(t)).forward({ addr: (await tcpUpstream(t)).address, ...pooled })
      await (await agent(t)).forward({ addr: (await tcpUpstream(t)).address, ...pooled })
      await assert.rejects(member(t, 'c', { domain }), /the protocol, or the PROXY header, of this tunnel is not that/)
    })

    const others: readonly [name: string, options: TunnelOptions, says: RegExp][] = [
      ['guards', { basic_auth: ['ada:engine-no-2'] }, /guards and other options of this tunnel are not those/],
      ['no guards', {}, /guards and other options of this tunnel are not those/],
      [
        'another policy',
        { basic_auth: ['ada:engine-no-1'], traffic_policy: 'on_http_request: [{actions: [{type: deny}]}]' },
        /the traffic policy of this tunnel is not that/,
      ],
      ['a PROXY header', { basic_auth: ['ada:engine-no-1'], proxy_proto: 1 }, /the PROXY header/],
      ['no pooling', { basic_auth: ['ada:engine-no-1'], pooling: false }, /already online; stop the other/],
    ]
    for (const [name, options, says] of others) {
      test(`refuses ${name}`, async (t) => {
        const domain = freshName()
        await member(t, 'a', { domain, basic_auth: ['ada:engine-no-1'] })
        await assert.rejects(member(t, 'b', { domain, ...options }), (error: AgentFault) => {
          assert.match(error.message, says)
          assert.equal(error.serverCode, 'ERR_NGROK_334')
          assert.doesNotMatch(error.message, /engine/)
          return true
        })
        await member(t, 'c', { domain, basic_auth: ['ada:engine-no-1'] })
      })
    }

    test('does not include a tunnel that started without pooling', async (t) => {
      const domain = freshName()
      await member(t, 'a', { domain, pooling: false })
      await assert.rejects(member(t, 'b', { domain }), /does not share its address; start both with pooling/)
    })

    test('has one owner', async (t) => {
      const domain = freshName()
      await member(t, 'a', { domain })
      const { api } = await platform.member()
      const { token } = await api.create('/credentials')
      await assert.rejects(member(t, 'b', { domain }, token), /belongs to another owner/)
      const own = await platform.admin.create('/credentials')
      await member(t, 'c', { domain }, own.token)
      assert.deepEqual(Object.keys(await counted(domain, 8)).toSorted(), ['a', 'c'])
    })

    test('accepts tunnels of the official SDK', async (t) => {
      const domain = freshName()
      await member(t, 'own', { domain })
      const builder = new ngrok.SessionBuilder().authtoken(platform.authtoken).serverAddr(platform.agents)
      const session = await builder.caCert(Buffer.from(platform.ca)).connect()
      t.after(() => session.close())
      const { address } = await service(t, 'sdk')
      await session.httpEndpoint().domain(domain).poolingEnabled(true).listenAndForward(`http://${address}`)
      await until('both are served', async () => Object.keys(await counted(domain, 4)).length === 2)
    })
  })
}
