/** Edges on three nodes: what is stored is in force at each, and tunnel groups have members on all of them. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import type { Json } from '../../support/api-client.ts'
import { agentAt, type ClusterNode, type TestCluster } from '../../support/cluster.ts'
import { until } from '../../support/until.ts'
import { httpUpstream, tcpUpstream } from '../../support/upstream.ts'
import { dialTcp, exchange, visit } from '../../support/visitor.ts'
import { waysToAskWeb } from '../../support/ways-to-ask.ts'

/** How many writes are measured until another node has them; none, unless this variable says so. */
const DELAYS = Number(process.env.POSTERN_IN_FORCE_DELAYS ?? 0)

export function edgeTests(cluster: () => TestCluster): void {
  /** An HTTPS edge whose only route has these modules. */
  const httpsEdge = async ({ api }: ClusterNode, name: string, modules: Json): Promise<string> => {
    const { id } = await api.create('/edges/https', { hostports: [`${name}:443`] })
    const route = { match_type: 'path_prefix', match: '/', ...modules }
    return `/edges/https/${id}/routes/${(await api.create(`/edges/https/${id}/routes`, route)).id}`
  }
  /** The text that a name answers at a node; undefined while it is not served there. */
  const answered = async (node: ClusterNode, name: string): Promise<string | undefined> => {
    // Before the edge is in force the name has a certificate that no visitor accepts.
    const answer = await visit(node.at(`https://${name}`), cluster()).catch(() => undefined)
    return answer?.text
  }
  /** An agent at a node, with these labels, whose service answers the name of the node. */
  const labelledAt = async (t: TestContext, node: ClusterNode, labels: Readonly<Record<string, string>>) => {
    const web = await httpUpstream(t, (_, response) => response.end(node.name))
    return (await agentAt(t, cluster(), node)).forward({ addr: web.port, labels })
  }

  test('have at a node what another has stored, as soon as that node has answered a later write', async () => {
    const [first, second] = cluster().nodes
    for (let round = 0; round < 5; round++) {
      const name = `later-${round}.test`
      const { id: backend_id } = await first.api.create('/backends/http_response', { body: name })
      await httpsEdge(first, name, { backend: { backend_id } })
      // It waits for all changes up to its own.
      const { headers } = await second.api.send('POST', '/ip_policies')
      if (headers.get('service-in-force') === 'yes') assert.equal(await answered(second, name), name)
    }
  })

  test('show at another node what one has stored', { skip: DELAYS === 0 && 'a measurement' }, async (t) => {
    const [first, second] = cluster().nodes
    const bodies = ['one', 'two']
    const ids: string[] = []
    for (const body of bodies) ids.push((await first.api.create('/backends/http_response', { body })).id)
    const route = await httpsEdge(first, 'measured.test', { backend: { backend_id: ids[0] } })
    await until('it is served', async () => (await answered(second, 'measured.test')) === 'one')
    const [, kept] = waysToAskWeb(second.at('https://measured.test'), cluster().ca)
    const delays: number[] = []
    for (let i = 1; i <= DELAYS; i++) {
      await first.api.send('PUT', `${route}/backend`, { body: { backend_id: ids[i % 2] } })
      const answeredAt = performance.now()
      while ((await kept?.ask())?.text !== bodies[i % 2]) await pause(1)
      delays.push(performance.now() - answeredAt)
    }
    kept?.close()
    delays.sort((a, b) => a - b)
    const at = (part: number): string => (delays[Math.ceil(part * delays.length) - 1] ?? 0).toFixed(0)
    t.diagnostic(
      `${DELAYS} writes are met at another node after ${at(0.5)} ms (p50), ${at(0.99)} (p99), ${at(1)} (most)`,
    )
  })

  test('spread a group over its members at all of them', async (t) => {
    const { nodes } = cluster()
    const labels = { app: 'spread' }
    const { id } = await nodes[0].api.create('/backends/tunnel_group', { labels })
    await httpsEdge(nodes[0], 'spread.test', { backend: { backend_id: id } })
    const opened = []
    for (const node of nodes) opened.push(await labelledAt(t, node, { ...labels, at: node.name }))
    for (const node of nodes) {
      // Each plane takes the tunnels in turn by itself, once it knows all of them.
      await until(`visitors of ${node.name} are spread evenly`, async () => {
        const turns = await Promise.all(Array.from({ length: 30 }, () => answered(node, 'spread.test')))
        return nodes.every(({ name }) => turns.filter((turn) => turn === name).length >= 8)
      })
    }
    const ids = opened.map((tunnel) => tunnel.id).toSorted()
    for (const { api, name } of nodes) {
      const listed = (await api.get(`/backends/tunnel_group/${id}`)).tunnels
      assert.deepEqual(listed.map((tunnel: Json) => tunnel.id).toSorted(), ids, name)
      for (const tunnelId of ids) {
        const { backends } = await api.get(`/tunnels/${tunnelId}`)
        assert.deepEqual(
          backends.map((backend: Json) => backend.id),
          [id],
          name,
        )
      }
    }
  })

  test('lose no visitor when a member at another node goes', async (t) => {
    const { nodes } = cluster()
    const labels = { app: 'going' }
    const { id } = await nodes[0].api.create('/backends/tunnel_group', { labels })
    await httpsEdge(nodes[0], 'going.test', { backend: { backend_id: id } })
    const [first] = [await labelledAt(t, nodes[1], labels), await labelledAt(t, nodes[2], labels)]
    await until('both get visitors', async () => (await answered(nodes[0], 'going.test')) === 'node-2')
    await until('both get visitors', async () => (await answered(nodes[0], 'going.test')) === 'node-3')
    await first.close()
    for (let i = 0; i < 10; i++) assert.equal(await answered(nodes[0], 'going.test'), 'node-3')
  })

  test('find a new member after all were gone', async (t) => {
    const { nodes } = cluster()
    const labels = { app: 'late' }
    const { id } = await nodes[0].api.create('/backends/tunnel_group', { labels })
    await httpsEdge(nodes[0], 'late.test', { backend: { backend_id: id } })
    for (const node of nodes) {
      await until('none is online', async () => (await answered(node, 'late.test'))?.includes('ERR_BACKEND_OFFLINE'))
    }
    await labelledAt(t, nodes[1], labels)
    for (const node of nodes) {
      await until('it is found', async () => (await answered(node, 'late.test')) === 'node-2')
    }
  })

  test('carry connections of a TCP edge to members at other nodes', async (t) => {
    const { nodes } = cluster()
    const labels = { app: 'bytes' }
    const { id } = await nodes[1].api.create('/backends/tunnel_group', { labels })
    const port = cluster().tcpPort()
    await nodes[1].api.create('/edges/tcp', { hostports: [`tcp.test:${port}`], backend: { backend_id: id } })
    const echo = await tcpUpstream(t)
    await (await agentAt(t, cluster(), nodes[2])).forward({ addr: echo.port, labels })
    for (const node of nodes) {
      const url = node.at(`tcp://tcp.test:${port}`)
      await until(`bytes come back at ${node.name}`, async () => {
        const socket = await dialTcp(url).catch(() => undefined)
        return socket && (await exchange(socket, 'abc').catch(() => '')) === 'abc'
      })
    }
  })

  test('refuse an edge on an address that an agent at another node serves', async (t) => {
    const { nodes } = cluster()
    const { port } = await httpUpstream(t, (_, response) => response.end('agent'))
    const agent = await agentAt(t, cluster(), nodes[0])
    const web = await agent.forward({ addr: port, domain: 'agents.test' })
    const remote = `tcp.test:${cluster().tcpPort()}`
    const tcp = await agent.forward({ addr: port, proto: 'tcp', remote_addr: remote })
    const wanted = [
      { tunnel: web, path: '/edges/https', hostports: ['agents.test:443'] },
      { tunnel: tcp, path: '/edges/tcp', hostports: [remote] },
    ]
    for (const { tunnel, path, hostports } of wanted) {
      const free = await nodes[1].api.create(path)
      for (const { api } of nodes) {
        await api.refused('ERR_HOSTPORT_SERVED_BY_AGENT', 'POST', path, { body: { hostports } })
        await api.refused('ERR_HOSTPORT_SERVED_BY_AGENT', 'PATCH', `${path}/${free.id}`, { body: { hostports } })
      }
      await tunnel.close()
      const { api } = nodes[2]
      await until('it is free', async () => (await api.send('POST', path, { body: { hostports } })).status === 201)
    }
    await assert.rejects(agent.forward({ addr: port, domain: 'agents.test' }), /belongs to the edge/)
  })

  test('apply changes that were made at another node', async () => {
    const { nodes } = cluster()
    const fixed = await nodes[0].api.create('/backends/http_response', { body: 'one' })
    const route = await httpsEdge(nodes[0], 'fixed.test', { backend: { backend_id: fixed.id } })
    const inForce = async (text: string): Promise<void> => {
      for (const node of nodes) {
        await until(`'${text}' at ${node.name}`, async () => (await answered(node, 'fixed.test'))?.includes(text))
      }
    }
    await inForce('one')
    await nodes[1].api.update(`/backends/http_response/${fixed.id}`, { body: 'two' })
    await inForce('two')
    await nodes[2].api.update(route, { user_agent_filter: { deny: ['.*'] } })
    await inForce('ERR_USER_AGENT_REFUSED')
    await nodes[0].api.delete(route)
    await inForce('ERR_NO_ROUTE')
  })
}
