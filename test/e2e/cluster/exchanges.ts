/** Exchanges on three nodes: any of them lists, reads, captures and replays those of another. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Json } from '../../support/api-client.ts'
import { agentAt, type ClusterNode, type TestCluster } from '../../support/cluster.ts'
import { until } from '../../support/until.ts'
import { httpUpstream } from '../../support/upstream.ts'
import { visit } from '../../support/visitor.ts'

export function exchangeTests(cluster: () => TestCluster): void {
  /** An HTTPS edge that answers by itself, in force at all nodes. */
  const edgeOf = async (name: string): Promise<string> => {
    const { nodes } = cluster()
    const { api } = nodes[0]
    const backend = await api.create('/backends/http_response', { body: 'hello' })
    const { id } = await api.create('/edges/https', { hostports: [`${name}:443`] })
    const route = { match_type: 'path_prefix', match: '/', backend: { backend_id: backend.id } }
    await api.create(`/edges/https/${id}/routes`, route)
    for (const node of nodes)
      await until(`${name} is served`, async () => (await asked(node, name, '/wait')) === 'hello')
    return id
  }
  const asked = async (node: ClusterNode, name: string, path: string): Promise<string | undefined> => {
    const answer = await visit(node.at(`https://${name}`), cluster(), { path }).catch(() => undefined)
    return answer?.text
  }
  /** What a node lists, once there are `count`. */
  const listed = async ({ api }: ClusterNode, query: string, count: number): Promise<Json[]> => {
    let found: Json[] = []
    await until('all are listed', async () => {
      found = (await api.get(`/exchanges?${query}`)).exchanges
      return found.length >= count
    })
    return found
  }

  test('are listed and read at each, wherever the visitor was', async () => {
    const { nodes } = cluster()
    const id = await edgeOf('listed.test')
    for (const node of nodes) await asked(node, 'listed.test', `/at/${node.name}`)
    const query = `edge_id=${id}&path=/at/`
    const first = await listed(nodes[0], query, 3)
    assert.equal(new Set(first.map(({ node }) => node)).size, 3)
    for (const node of nodes) {
      const found = await listed(node, query, 3)
      assert.deepEqual(
        found.map((each) => each.id),
        first.map((each) => each.id),
      )
      for (const each of found) assert.equal((await node.api.get(`/exchanges/${each.id}`)).path, each.path)
    }
    const page = await nodes[1].api.get(`/exchanges?${query}&limit=2`)
    assert.equal(page.exchanges.length, 2)
    const rest = await nodes[1].api.get(`/exchanges?${query}&limit=2&before_id=${page.exchanges[1].id}`)
    assert.deepEqual(
      [...page.exchanges, ...rest.exchanges].map((each: Json) => each.id),
      first.map((each) => each.id),
    )
  })

  test('name the session of their tunnel, even when it is at another node', async (t) => {
    const [home, other] = cluster().nodes
    const { port } = await httpUpstream(t, (_, response) => response.end('hello'))
    const agent = await agentAt(t, cluster(), home)
    const { url } = await agent.forward({ addr: port })
    await visit(other.at(url), cluster(), { path: '/through' })
    const [seen] = await listed(other, 'path=/through', 1)
    const [tunnel] = (await home.api.get('/tunnels')).tunnels.filter((each: Json) => each.id === seen.tunnel_id)
    assert.equal(seen.tunnel_session_id, tunnel.tunnel_session.id)
  })

  test('are captured on all nodes by one capture, and replayed from any', async () => {
    const [one, two, three] = cluster().nodes
    const id = await edgeOf('captured.test')
    const capture = await one.api.create('/captures', { edge_id: id, bodies: true })
    let found: Json
    await until('another node captures', async () => {
      await asked(two, 'captured.test', '/kept')
      const [exchange] = await listed(three, `edge_id=${id}&path=/kept`, 1)
      found = await three.api.get(`/exchanges/${exchange.id}`)
      return found.response !== null
    })
    assert.deepEqual([found.capture_id, found.response.body.content], [capture.id, 'hello'])
    const { status, body } = await three.api.send('POST', `/exchanges/${found.id}/replay`, { body: { path: '/again' } })
    assert.deepEqual([status, body.replay_of, body.node, body.path], [201, found.id, found.node, '/again'])
    await three.api.refused('ERR_INVALID_VALUE', 'POST', `/exchanges/${found.id}/replay`, { body: { path: 'again' } })
    await two.api.delete(`/captures/${capture.id}`)
    assert.deepEqual((await one.api.get('/captures')).captures, [])
  })
}
