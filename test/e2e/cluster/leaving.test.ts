/** Nodes that stop or die while others serve: our agents go to another node, and visitors do not notice when one stops. */
import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { after, before, describe, type TestContext, test } from 'node:test'
import { agentAt, type ClusterNode, startCluster, type TestCluster } from '../../support/cluster.ts'
import { Crowd } from '../../support/crowd.ts'
import { eachStore } from '../../support/databases.ts'
import { until } from '../../support/until.ts'
import { httpUpstream, type Owner, tcpUpstream } from '../../support/upstream.ts'
import { answerOf, beginVisit, dialTcp, visit } from '../../support/visitor.ts'

/** The name of an edge that leads to a tunnel with labels. */
const SHOP = 'shop.cluster.localhost'

describe('a node among others', () => {
  eachStore(
    (store) => {
      const closers: (() => unknown)[] = []
      const owner: Owner = { after: (close) => void closers.unshift(close) }
      let cluster: TestCluster
      let nodes: ClusterNode[]
      before(async () => {
        // Longer than any test waits: a connection that is closed only after this time makes a test fail.
        cluster = await startCluster(owner, { databaseUrl: await store.url(), flags: { 'drain-timeout': '10m' } })
        nodes = [...cluster.nodes]
      })
      after(async () => {
        for (const close of closers) await close()
      })

      /** Starts a node again, and waits until the others know it. */
      const again = async (index: number): Promise<ClusterNode> => {
        const node = await cluster.start(index + 1)
        nodes[index] = node
        await until('it is known', async () => (await node.api.get('/nodes')).nodes.length === nodes.length)
        return node
      }

      /** The agent serves an edge as the only member of its group. */
      const serveGroup = async (agent: Awaited<ReturnType<typeof agentAt>>, addr: number): Promise<void> => {
        const { api } = nodes[0] as ClusterNode
        await agent.forward({ addr, labels: { app: 'shop' } })
        const backend = await api.create('/backends/tunnel_group', { labels: { app: 'shop' } })
        const edge = await api.create('/edges/https', { hostports: [`${SHOP}:443`] })
        const route = { match_type: 'path_prefix', match: '/', backend: { backend_id: backend.id } }
        await api.create(`/edges/https/${edge.id}/routes`, route)
      }

      /** Two agents serve a pool, both at the first node, which they leave together. */
      const servePool = async (t: TestContext, addr: number): Promise<string> => {
        let url = ''
        for (let i = 0; i < 2; i++) {
          const agent = await agentAt(t, cluster, nodes[0] as ClusterNode, { connections: 1 })
          url = (await agent.forward({ addr, domain: 'pair.cluster.localhost', pooling: true })).url
        }
        return url
      }

      test('stops while our agents move elsewhere, alone, in a pool and in a group, and no request fails', async (t) => {
        const waiting: ServerResponse[] = []
        const service = await httpUpstream(t, ({ url }, response) => {
          if (url !== '/long') return response.end('served')
          response.write('begun ')
          waiting.push(response)
        })
        const echo = await tcpUpstream(t)
        const first = nodes[0] as ClusterNode
        const agent = await agentAt(t, cluster, first)
        const { url } = await agent.forward({ addr: service.port })
        const { url: tcp } = await agent.forward({ addr: echo.port, proto: 'tcp' })
        await serveGroup(agent, service.port)
        const webs = [url, await servePool(t, service.port), `https://${SHOP}`]
        const visited = { webs, tcp }
        for (const node of nodes) {
          for (const web of webs) {
            const isOpen = async () => (await visit(node.at(web), cluster)).status === 200
            await until('the address is served', isOpen)
          }
          await until('the port is open', () => dialTcp(node.at(tcp)).catch(() => undefined)).then((it) => it.destroy())
        }
        const crowds = nodes.map((node) => new Crowd(node, visited, cluster))
        t.after(() => Promise.all(crowds.map((crowd) => crowd.stop())))
        const failed = (): string[] => crowds.flatMap((crowd) => crowd.failed)
        const settle = async (): Promise<void> => {
          await Promise.all(crowds.map((crowd) => crowd.goOn()))
          assert.deepEqual(failed(), [])
        }
        await settle()
        for (const [index, node] of nodes.entries()) {
          // Like a load balancer that sees a node stop: it sends no new visitors there.
          const [left] = crowds.splice(index, 1)
          const other = nodes[(index + 1) % nodes.length] as ClusterNode
          const long = answerOf(beginVisit(other.at(url), cluster, { path: '/long' }))
          await until('the long answer has begun', () => waiting.length === 1)
          const ended = node.server.stop()
          await left?.stop()
          assert.deepEqual(left?.failed, [])
          await settle()
          waiting.pop()?.end('and finished')
          assert.equal((await long).text, 'begun and finished')
          assert.equal((await ended).code, 0)
          await settle()
          crowds.splice(index, 0, new Crowd(await again(index), visited, cluster))
          await settle()
        }
      })

      test('dies, and our agent comes back at another with the same URL', async (t) => {
        const service = await httpUpstream(t, (_, response) => response.end('served'))
        const [first, second, third] = nodes as [ClusterNode, ClusterNode, ClusterNode]
        const agent = await agentAt(t, cluster, first)
        const { url } = await agent.forward({ addr: service.port })
        first.server.kill('SIGKILL')
        await first.server.ended
        for (const node of [second, third]) {
          const isServed = async (): Promise<boolean> => (await visit(node.at(url), cluster)).status === 200
          await until('it is served again', isServed, { limitMs: 30_000 })
        }
        await again(0)
      })
    },
    ['postgres'],
  )
})
