/** An agent whose tunnels are at one node has a standby at another, and goes on there when its node dies. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { agentAt, type ClusterNode, listed, startCluster } from '../../support/cluster.ts'
import { eachStore } from '../../support/databases.ts'
import { startGatedCluster } from '../../support/gated-cluster.ts'
import { metric } from '../../support/metrics.ts'
import { until } from '../../support/until.ts'
import { httpUpstream, tcpUpstream } from '../../support/upstream.ts'
import { dialTcp, visit } from '../../support/visitor.ts'

/** How long the agent may take to get a standby, and other nodes to see where it is, in milliseconds. */
const SETTLED_MS = 30_000

/** The number of standbys at a node. */
const standbys = ({ server }: ClusterNode): Promise<number> => metric(server.metricsUrl, 'postern_cluster_standbys')

/** The only node that has a standby. */
async function waitsAt<Node extends ClusterNode>(among: readonly Node[]): Promise<Node> {
  let found: Node[] = []
  const isThere = async (): Promise<boolean> => {
    const counts = await Promise.all(among.map(standbys))
    found = among.filter((_, i) => (counts[i] ?? 0) > 0)
    return found.length === 1
  }
  await until('another node has a standby', isThere, { limitMs: SETTLED_MS })
  return found[0] ?? assert.fail()
}

describe('a standby', () => {
  eachStore(
    (store) => {
      test('becomes the session of a node that dies, with its addresses, and the third node gets the next', async (t) => {
        const cluster = await startCluster(t, { databaseUrl: await store.url() })
        const service = await httpUpstream(t, (_, response) => response.end('served'))
        const echo = await tcpUpstream(t)
        const events: { readonly type: string; readonly session?: string }[] = []
        const [first, ...others] = cluster.nodes
        const agent = await agentAt(t, cluster, first, { onEvent: (event) => events.push(event) })
        const { url } = await agent.forward({ addr: service.port })
        const { url: tcp } = await agent.forward({ addr: echo.port, proto: 'tcp' })
        const [session] = await listed(first, 'tunnel_sessions')
        const next = await waitsAt(others)
        const third = others.find((node) => node !== next) ?? assert.fail()
        assert.equal((await listed(next, 'tunnel_sessions')).length, 1, 'a standby is not a session')
        assert.deepEqual(await Promise.all([first, third].map(standbys)), [0, 0])

        first.server.kill('SIGKILL')
        await first.server.ended
        const isServed = async (node: ClusterNode) => (await visit(node.at(url), cluster)).status === 200
        for (const node of [next, third]) await until('the address is served', () => isServed(node))
        await until('the port is open', () => dialTcp(third.at(tcp)).catch(() => undefined)).then((it) => it.destroy())
        const back = events.filter(({ type }) => type === 'online').at(-1)
        assert.equal(back?.session, session?.id)
        const [here] = await listed(next, 'tunnel_sessions')
        assert.equal(here?.id, session?.id)
        assert.equal(here?.region, next.name.replace('node-', 'r'), 'it is at the node of the standby')
        assert.equal(await standbys(next), 0)
        assert.equal(await waitsAt([next, third]), third)
        await agent.close()
        await until('there is no standby any more', async () => (await standbys(third)) === 0)
      })

      test('is not used while the database is down: the first node keeps the addresses, and gets the session back', async (t) => {
        const cluster = await startGatedCluster(t, { databaseUrl: await store.url() })
        const service = await httpUpstream(t, (_, response) => response.end('served'))
        const [first, ...others] = cluster.nodes
        const agent = await agentAt(t, cluster, first, { server: first.agentsGate })
        const { url } = await agent.forward({ addr: service.port })
        const waiting = await waitsAt(others)
        for (const { gates } of cluster.nodes) await gates.database.shut()
        await first.gates.agents.shut()
        await until('the standby was closed', async () => (await standbys(waiting)) === 0)
        await first.gates.agents.open()
        const isServed = async () => (await visit(first.at(url), cluster)).status === 200
        await until('the address is served', isServed)
        for (const { gates } of cluster.nodes) await gates.database.open()
        for (const node of cluster.nodes) {
          const isServedHere = async () => (await visit(node.at(url), cluster)).status === 200
          await until('the address is served at every node', isServedHere, { limitMs: SETTLED_MS })
        }
      })
    },
    ['postgres'],
  )
})
