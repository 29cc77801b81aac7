/**
 * Nodes that stop or die while others serve: agents go on at another node or are at two, and visitors do not notice when one
 * stops.
 */
import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { after, before, describe, type TestContext, test } from 'node:test'
import { agentAt, type ClusterNode, listed, startCluster, type TestCluster } from '../../support/cluster.ts'
import { Crowd } from '../../support/crowd.ts'
import { eachStore } from '../../support/databases.ts'
import { openGate, type TcpGate } from '../../support/tcp-gate.ts'
import { until } from '../../support/until.ts'
import { httpUpstream, type Owner, tcpUpstream } from '../../support/upstream.ts'
import { answerOf, beginVisit, dialTcp, visit } from '../../support/visitor.ts'
import { Visitors } from '../../support/visitors.ts'

/** The name of an edge that leads to a tunnel with labels. */
const SHOP = 'shop.cluster.localhost'

/** The metadata by which tests find the agent at two nodes, and its tunnels, among others. */
const AT_TWO = 'at two nodes'

/** How long the second half may take to come back, in milliseconds: a dead node counts as alive for its lease. */
const BACK_MS = 60_000

describe('a node among others', () => {
  eachStore(
    (store) => {
      const closers: (() => unknown)[] = []
      const owner: Owner = { after: (close) => void closers.unshift(close) }
      let cluster: TestCluster
      let nodes: ClusterNode[]
      /** Where agents reach each node. */
      let gates: TcpGate[]
      const gateOf = (node: ClusterNode): TcpGate => gates[nodes.indexOf(node)] ?? assert.fail()
      const addressOf = ({ port }: TcpGate): string => `127.0.0.1:${port}`
      const leadTo = (node: ClusterNode): void => gateOf(node).lead(Number(node.server.agents.split(':').at(-1)))
      before(async () => {
        gates = await Promise.all([0, 0, 0].map(openGate))
        for (const gate of gates) owner.after(() => gate.shut())
        cluster = await startCluster(owner, {
          databaseUrl: await store.url(),
          // Longer than any test waits: a connection that is closed only after this time makes a test fail.
          flags: { 'drain-timeout': '10m' },
          ofNode: (number) => ({ flags: { 'agent-address': addressOf(gates[number - 1] ?? assert.fail()) } }),
        })
        nodes = [...cluster.nodes]
        for (const node of nodes) leadTo(node)
      })
      after(async () => {
        for (const close of closers) await close()
      })

      /** Starts a node again, and waits until it knows the others and they know it. */
      const again = async (node: ClusterNode): Promise<ClusterNode> => {
        const index = nodes.indexOf(node)
        const started = await cluster.start(index + 1)
        nodes[index] = started
        leadTo(started)
        await until('it is known', async () => (await started.api.get('/nodes')).nodes.length === nodes.length)
        return started
      }

      /** What is listed of the agent at two nodes. */
      const ofTwo = async (by: ClusterNode, kind: 'tunnel_sessions' | 'tunnels') =>
        (await listed(by, kind)).filter(({ metadata }) => metadata === AT_TWO)

      /** The two nodes where this agent is, as `by` sees it: both tunnels are at each of them, and at no other. */
      const halves = async (by: ClusterNode, gone?: ClusterNode): Promise<[ClusterNode, ClusterNode]> => {
        let found: ClusterNode[] = []
        await until(
          'it is at two nodes',
          async () => {
            const sessions = await ofTwo(by, 'tunnel_sessions')
            const tunnels = await ofTwo(by, 'tunnels')
            // Each node has its own region.
            const regions = new Set(sessions.map(({ region }) => region))
            found = nodes.filter(({ name }) => regions.has(name.replace('node-', 'r')))
            // A node that died is listed until its lease ends.
            const isAtTwo = found.length === 2 && !found.some((node) => node === gone)
            return isAtTwo && sessions.length === 2 && tunnels.length === 4
          },
          { limitMs: BACK_MS },
        )
        return found as [ClusterNode, ClusterNode]
      }

      /** An agent whose pooled addresses are served at two nodes. */
      const startAtTwo = async (t: TestContext) => {
        const service = await httpUpstream(t, (_, response) => response.end('served'))
        const echo = await tcpUpstream(t)
        const events: string[] = []
        const first = nodes[0] as ClusterNode
        const agent = await agentAt(t, cluster, first, {
          server: addressOf(gateOf(first)),
          session_metadata: AT_TWO,
          onEvent: ({ type }) => events.push(type),
        })
        const options = { pooling: true, metadata: AT_TWO }
        const { url: web } = await agent.forward({ addr: service.port, ...options })
        const { url: tcp } = await agent.forward({ addr: echo.port, proto: 'tcp', ...options })
        const visitorsOf = async (node: ClusterNode): Promise<Visitors> => {
          await portIsOpen(node, tcp)
          const visitors = new Visitors({ web: node.at(web), tcp: node.at(tcp), ca: cluster.ca })
          t.after(() => visitors.stop())
          await visitors.goOn()
          return visitors
        }
        return { agent, events, web, tcp, visitorsOf }
      }

      const portIsOpen = async (node: ClusterNode, tcp: string): Promise<void> => {
        const socket = await until('the port is open', () => dialTcp(node.at(tcp)).catch(() => undefined))
        socket.destroy()
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

      test('stops while our agents move elsewhere, alone, at two nodes, in a pool and in a group, and no request fails', async (t) => {
        const waiting: ServerResponse[] = []
        const service = await httpUpstream(t, ({ url }, response) => {
          if (url !== '/long') return response.end('served')
          response.write('begun ')
          waiting.push(response)
        })
        const echo = await tcpUpstream(t)
        const atTwo = await startAtTwo(t)
        const agent = await agentAt(t, cluster, nodes[0] as ClusterNode)
        const { url } = await agent.forward({ addr: service.port })
        const { url: tcp } = await agent.forward({ addr: echo.port, proto: 'tcp' })
        await serveGroup(agent, service.port)
        const webs = [url, atTwo.web, await servePool(t, service.port), `https://${SHOP}`]
        const visited = { webs, tcps: [tcp, atTwo.tcp] }
        for (const node of nodes) {
          for (const web of webs) {
            const isOpen = async () => (await visit(node.at(web), cluster)).status === 200
            await until('the address is served', isOpen)
          }
          for (const each of visited.tcps) await portIsOpen(node, each)
        }
        await halves(nodes[0] as ClusterNode)
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
          crowds.splice(index, 0, new Crowd(await again(node), visited, cluster))
          await settle()
          await halves(other)
        }
        assert.ok(!atTwo.events.includes('offline'), atTwo.events.join())
        await settle()
        await atTwo.agent.close()
      })

      test('dies, and then another: an agent at two loses only requests in flight, and others come back with their URL', async (t) => {
        const { agent, events, visitorsOf } = await startAtTwo(t)
        const service = await httpUpstream(t, (_, response) => response.end('served'))
        for (const index of [0, 1]) {
          const at = await halves(nodes[0] as ClusterNode)
          const third = nodes.find((node) => !at.includes(node)) ?? assert.fail()
          const visitors = await visitorsOf(third)
          const dying = at[index] as ClusterNode
          const alone = await agentAt(t, cluster, dying)
          const { url } = await alone.forward({ addr: service.port })
          dying.server.kill('SIGKILL')
          await dying.server.ended
          visitors.changed()
          await visitors.goOn()
          for (const node of nodes.filter((each) => each !== dying)) {
            const isServed = async (): Promise<boolean> => (await visit(node.at(url), cluster)).status === 200
            await until('it is served again', isServed, { limitMs: 30_000 })
          }
          await alone.close()
          await halves(third, dying)
          await visitors.goOn()
          await again(dying)
          await visitors.goOn()
          await visitors.stop()
        }
        assert.ok(!events.includes('offline'), events.join())
        await agent.close()
        const isGone = async () => (await ofTwo(nodes[0] as ClusterNode, 'tunnel_sessions')).length === 0
        await until('nothing is left', isGone)
      })

      test('dies, and the first session of an agent at two can only go where its second is: that loses no more', async (t) => {
        const { agent, events, visitorsOf } = await startAtTwo(t)
        const at = await halves(nodes[0] as ClusterNode)
        const [dying] = at
        const third = nodes.find((node) => !at.includes(node)) ?? assert.fail()
        const visitors = await visitorsOf(third)
        gateOf(third).hush()
        dying.server.kill('SIGKILL')
        await dying.server.ended
        visitors.changed()
        const isAlone = async () => (await ofTwo(third, 'tunnel_sessions')).length === 1
        await until('the second has made room for the first', isAlone)
        await visitors.goOn()
        gateOf(third).speak()
        await halves(third, dying)
        await visitors.goOn()
        assert.ok(!events.includes('offline'), events.join())
        await visitors.stop()
        await agent.close()
      })
    },
    ['postgres'],
  )
})
