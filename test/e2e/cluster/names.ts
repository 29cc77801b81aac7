/** Names on three nodes: each has one holder, who may come back at any node, and its guards apply at all. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { AgentFault } from '../../../src/agent/library.ts'
import { TestAgent } from '../../../src/data-plane/tunnel/testing/raw-agent.ts'
import { Secret } from '../../../src/lib/secrets/secret.ts'
import type { AuthAnswer } from '../../../src/link/wire/messages/auth.ts'
import { AUTHTOKEN, agentAt, type ClusterNode, type TestCluster } from '../../support/cluster.ts'
import { until } from '../../support/until.ts'
import { httpUpstream, tcpUpstream } from '../../support/upstream.ts'
import { beginVisit, dialTcp, exchange, visit } from '../../support/visitor.ts'

/** The vendor's number for an address that is online. */
const ALREADY_ONLINE = 'ERR_NGROK_334'

export function nameTests(cluster: () => TestCluster): void {
  const saying = (t: TestContext, text: string) => httpUpstream(t, (_, response) => response.end(text))
  const isOnline = (error: unknown): boolean => error instanceof AgentFault && error.serverCode === ALREADY_ONLINE

  test('give a name to one of two agents that ask for it at two nodes', async (t) => {
    const { nodes } = cluster()
    const { port } = await saying(t, 'hello')
    const agents = await Promise.all([agentAt(t, cluster(), nodes[0]), agentAt(t, cluster(), nodes[1])])
    for (let i = 0; i < 5; i++) {
      const domain = `race-${i}.example.com`
      const outcomes = await Promise.allSettled(agents.map((agent) => agent.forward({ addr: port, domain })))
      const refused = outcomes.flatMap((each) => (each.status === 'rejected' ? [each.reason] : []))
      assert.equal(refused.length, 1, domain)
      assert.ok(isOnline(refused[0]), String(refused[0]))
      for (const node of nodes) assert.equal((await visit(node.at(`https://${domain}`), cluster())).text, 'hello')
    }
  })

  test('tell a stranger that a name or port is online, and give it once it is free', async (t) => {
    const { nodes } = cluster()
    const { port } = await saying(t, 'hello')
    const [holder, stranger] = [await agentAt(t, cluster(), nodes[0]), await agentAt(t, cluster(), nodes[2])]
    const remote = `tcp.example.com:${cluster().tcpPort()}`
    const wanted = [
      { addr: port, domain: 'held.example.com' },
      { addr: port, proto: 'tcp' as const, remote_addr: remote },
    ]
    for (const options of wanted) {
      const held = await holder.forward(options)
      // All nodes know the holder from here on.
      for (const node of nodes) await visit(node.at('https://held.example.com'), cluster()).catch(() => undefined)
      await assert.rejects(stranger.forward(options), isOnline)
      await held.close()
      const got = await until('it is free', () => stranger.forward(options).catch(() => undefined))
      assert.equal(got.url.replace(/:\d+$/, ''), held.url.replace(/:\d+$/, ''))
      if (options.domain === undefined) continue
      for (const node of nodes) assert.equal((await visit(node.at(got.url), cluster())).text, 'hello', node.name)
    }
  })

  /** A silent agent, which serves nothing. */
  const quietAgent = async (t: TestContext, { server }: ClusterNode, former: Partial<AuthAnswer> = {}) => {
    const { cookie = new Secret(''), clientId = '' } = former
    const agent = new TestAgent({ port: Number(server.agents.slice(server.agents.lastIndexOf(':') + 1)) })
    t.after(() => agent.leave())
    const auth = await agent.authenticate({ authtoken: new Secret(AUTHTOKEN), cookie, clientId })
    assert.ok('sessionId' in auth, JSON.stringify(auth))
    return { agent, auth }
  }

  test('let an agent come back at another node with its name, and the first node gives it up', async (t) => {
    const { nodes } = cluster()
    const hostname = 'wandering.example.com'
    const first = await quietAgent(t, nodes[0])
    const bound = await first.agent.bind({ opts: { Hostname: hostname } })
    assert.ok('tunnelId' in bound, JSON.stringify(bound))
    // All nodes have looked the name up, and may remember where it was.
    const visits = nodes.map((node) => beginVisit(node.at(`https://${hostname}`), cluster()).on('error', () => {}))
    t.after(() => visits.map((each) => each.destroy()))
    await until('all have come', () => first.agent.visitors.length === nodes.length)

    const second = await quietAgent(t, nodes[1], first.auth)
    assert.equal(second.auth.sessionId, first.auth.sessionId)
    const again = await second.agent.bind({ opts: { Hostname: hostname }, token: bound.token })
    assert.ok('tunnelId' in again, JSON.stringify(again))
    assert.equal(again.tunnelId, bound.tunnelId)
    await first.agent.closed
    for (const [i, node] of nodes.entries()) {
      const late = beginVisit(node.at(`https://${hostname}`), cluster()).on('error', () => {})
      t.after(() => late.destroy())
      await until(`a visitor of ${node.name} comes`, () => second.agent.visitors.length === i + 1)
    }
    const session = await until('the third node lists it at the second', async () => {
      const { body } = await nodes[2].api.send('GET', `/tunnels/${bound.tunnelId}`)
      return body.region === 'r2' && body.tunnel_session
    })
    assert.equal(session.id, first.auth.sessionId)
  })

  test('apply guards of an agent at all nodes', async (t) => {
    const { nodes } = cluster()
    const { port } = await saying(t, 'secret')
    const agent = await agentAt(t, cluster(), nodes[0])
    const basic = await agent.forward({ addr: port, basic_auth: ['ada:correct horse'] })
    const restricted = await agent.forward({ addr: port, ip_restriction: { allow: ['127.0.0.9/32'] } })
    const echo = await tcpUpstream(t)
    const bytes = await agent.forward({
      ...{ addr: echo.port, proto: 'tcp' },
      ip_restriction: { allow: ['192.0.2.0/24'] },
    })
    for (const node of nodes) {
      for (const version of ['1.1', '2'] as const) {
        const status = async (headers: Record<string, string>): Promise<number> =>
          (await visit(node.at(basic.url), cluster(), { version, headers })).status
        assert.equal(await status({}), 401, node.name)
        assert.equal(await status({ authorization: authorization('ada:wrong horse!') }), 401, node.name)
        assert.equal(await status({ authorization: authorization('ada:correct horse') }), 200, node.name)
      }
      const from = async (address: string): Promise<number | undefined> =>
        (await visit(node.at(restricted.url), cluster(), { from: address }).catch(() => undefined))?.status
      assert.notEqual(await from('127.0.0.8'), 200, node.name)
      assert.equal(await from('127.0.0.9'), 200, node.name)
      const socket = await until('the port is open', () => dialTcp(node.at(bytes.url)).catch(() => undefined))
      assert.equal(await exchange(socket, 'abc').catch(() => ''), '', node.name)
    }
  })

  test('apply guards that an agent adds later at all nodes, whatever they had cached', async (t) => {
    const { nodes } = cluster()
    const { port } = await saying(t, 'secret')
    for (const home of nodes) {
      const agent = await agentAt(t, cluster(), home)
      const domain = `later-${home.name}.example.com`
      const url = `https://${domain}`
      const statuses = async (headers: Record<string, string> = {}): Promise<number[]> =>
        Promise.all(nodes.map(async (node) => (await visit(node.at(url), cluster(), { headers })).status))
      const open = await agent.forward({ addr: port, domain })
      assert.deepEqual(await statuses(), [200, 200, 200])
      // The visits keep connections to the service open for the next visitor.
      assert.deepEqual(await statuses(), [200, 200, 200])
      await open.close()
      await agent.forward({ addr: port, domain, basic_auth: ['ada:correct horse'] })
      for (let i = 0; i < 20; i++) assert.ok(!(await statuses()).includes(200), 'the former rules let no visitor in')
      assert.deepEqual(await statuses(), [401, 401, 401])
      assert.deepEqual(await statuses({ authorization: authorization('ada:correct horse') }), [200, 200, 200])
    }
  })
}

function authorization(credentials: string): string {
  return `Basic ${Buffer.from(credentials).toString('base64')}`
}
