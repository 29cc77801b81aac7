/** An agent whose tunnels are at one node has a connection that waits at another, and goes on there when its node dies. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { agentAt, type ClusterNode, listed, startCluster, type TestCluster } from '../../support/cluster.ts'
import { eachStore } from '../../support/databases.ts'
import { metric } from '../../support/metrics.ts'
import { until } from '../../support/until.ts'
import { httpUpstream, type Owner, tcpUpstream } from '../../support/upstream.ts'
import { dialTcp, visit } from '../../support/visitor.ts'

/** How long the agent may take to have a connection that waits, and others to see where it is, in milliseconds. */
const SETTLED_MS = 30_000

describe('a connection that waits', () => {
  eachStore(
    (store) => {
      const closers: (() => unknown)[] = []
      const owner: Owner = { after: (close) => void closers.unshift(close) }
      let cluster: TestCluster
      let nodes: ClusterNode[]
      before(async () => {
        cluster = await startCluster(owner, { databaseUrl: await store.url() })
        nodes = [...cluster.nodes]
      })
      after(async () => {
        for (const close of closers) await close()
      })

      /** How many wait at a node. */
      const standbys = ({ server }: ClusterNode): Promise<number> =>
        metric(server.metricsUrl, 'postern_cluster_standbys')

      /** The one node where one waits. */
      const waitsAt = async (among: readonly ClusterNode[]): Promise<ClusterNode> => {
        let found: ClusterNode[] = []
        const isThere = async (): Promise<boolean> => {
          const counts = await Promise.all(among.map(standbys))
          found = among.filter((_, i) => (counts[i] ?? 0) > 0)
          return found.length === 1
        }
        await until('a connection waits at another node', isThere, { limitMs: SETTLED_MS })
        return found[0] ?? assert.fail()
      }

      test('becomes the session of a node that dies, with its addresses, and another waits at the third', async (t) => {
        const service = await httpUpstream(t, (_, response) => response.end('served'))
        const echo = await tcpUpstream(t)
        const events: { readonly type: string; readonly session?: string }[] = []
        const [first, ...others] = nodes as [ClusterNode, ...ClusterNode[]]
        const agent = await agentAt(t, cluster, first, { onEvent: (event) => events.push(event) })
        const { url } = await agent.forward({ addr: service.port })
        const { url: tcp } = await agent.forward({ addr: echo.port, proto: 'tcp' })
        const [session] = await listed(first, 'tunnel_sessions')
        const next = await waitsAt(others)
        const third = others.find((node) => node !== next) ?? assert.fail()
        assert.equal((await listed(next, 'tunnel_sessions')).length, 1, 'what waits is no session')
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
        assert.equal(here?.region, next.name.replace('node-', 'r'), 'it is where it waited')
        assert.equal(await standbys(next), 0)
        assert.equal(await waitsAt([next, third]), third)
        await agent.close()
        await until('nothing waits any more', async () => (await standbys(third)) === 0)
      })
    },
    ['postgres'],
  )
})
