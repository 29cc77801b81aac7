/** An agent with a pooled address is at two nodes: visitors do not notice when one of them stops or dies. */
import assert from 'node:assert/strict'
import { after, before, describe, type TestContext, test } from 'node:test'
import { agentAt, type ClusterNode, listed, startCluster, type TestCluster } from '../../support/cluster.ts'
import { eachStore } from '../../support/databases.ts'
import { openGate, type TcpGate } from '../../support/tcp-gate.ts'
import { until } from '../../support/until.ts'
import { httpUpstream, type Owner, tcpUpstream } from '../../support/upstream.ts'
import { dialTcp } from '../../support/visitor.ts'
import { Visitors } from '../../support/visitors.ts'

/** How long the second half may take to come back, in milliseconds: a dead node counts as alive for its lease. */
const BACK_MS = 60_000

describe('an agent at two nodes', () => {
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
      const again = async (node: ClusterNode): Promise<void> => {
        const index = nodes.indexOf(node)
        const started = await cluster.start(index + 1)
        nodes[index] = started
        leadTo(started)
        await until('it is known', async () => (await started.api.get('/nodes')).nodes.length === nodes.length)
      }

      /** The nodes where the agent is, found by region: each has its own. */
      const whereItIs = async (by: ClusterNode): Promise<ClusterNode[]> => {
        const regions = new Set((await listed(by, 'tunnel_sessions')).map(({ region }) => region))
        return nodes.filter(({ name }) => regions.has(name.replace('node-', 'r')))
      }

      /** The two nodes where the agent is, as `by` sees it: both tunnels are at each of them, and at no other. */
      const halves = async (by: ClusterNode, gone?: ClusterNode): Promise<[ClusterNode, ClusterNode]> => {
        let found: ClusterNode[] = []
        await until(
          'it is at two nodes',
          async () => {
            const sessions = await listed(by, 'tunnel_sessions')
            const tunnels = await listed(by, 'tunnels')
            found = await whereItIs(by)
            // A node that died is listed until its lease ends.
            const isAtTwo = found.length === 2 && !found.some((node) => node === gone)
            return isAtTwo && sessions.length === 2 && tunnels.length === 4
          },
          { limitMs: BACK_MS },
        )
        return found as [ClusterNode, ClusterNode]
      }

      const start = async (t: TestContext) => {
        const service = await httpUpstream(t, (_, response) => response.end('served'))
        const echo = await tcpUpstream(t)
        const events: string[] = []
        const first = nodes[0] as ClusterNode
        const server = addressOf(gateOf(first))
        const agent = await agentAt(t, cluster, first, { server, onEvent: ({ type }) => events.push(type) })
        const { url: web } = await agent.forward({ addr: service.port, pooling: true })
        const { url: tcp } = await agent.forward({ addr: echo.port, proto: 'tcp', pooling: true })
        const visitorsOf = async (node: ClusterNode): Promise<Visitors> => {
          await until('the port is open', () => dialTcp(node.at(tcp)).catch(() => undefined)).then((it) => it.destroy())
          const visitors = new Visitors({ web: node.at(web), tcp: node.at(tcp), ca: cluster.ca })
          t.after(() => visitors.stop())
          await visitors.goOn()
          return visitors
        }
        return { agent, events, visitorsOf }
      }

      test('loses only requests in flight when one of them dies, and then the other', async (t) => {
        const { agent, events, visitorsOf } = await start(t)
        for (const index of [0, 1]) {
          const at = await halves(nodes[0] as ClusterNode)
          const third = nodes.find((node) => !at.includes(node)) ?? assert.fail()
          const visitors = await visitorsOf(third)
          const dying = at[index] as ClusterNode
          dying.server.kill('SIGKILL')
          await dying.server.ended
          visitors.changed()
          await visitors.goOn()
          await halves(third, dying)
          await visitors.goOn()
          await again(dying)
          await visitors.goOn()
          await visitors.stop()
        }
        assert.ok(!events.includes('offline'), events.join())
        await agent.close()
        const isGone = async () => (await listed(nodes[0] as ClusterNode, 'tunnel_sessions')).length === 0
        await until('nothing is left', isGone)
      })

      test('loses only those too when its first session can only go where its second is', async (t) => {
        const { agent, events, visitorsOf } = await start(t)
        const at = await halves(nodes[0] as ClusterNode)
        const [dying] = at
        const third = nodes.find((node) => !at.includes(node)) ?? assert.fail()
        const visitors = await visitorsOf(third)
        gateOf(third).hush()
        dying.server.kill('SIGKILL')
        await dying.server.ended
        visitors.changed()
        const isAlone = async () => (await listed(third, 'tunnel_sessions')).length === 1
        await until('the second has made room for the first', isAlone)
        await visitors.goOn()
        gateOf(third).speak()
        await halves(third, dying)
        await visitors.goOn()
        assert.ok(!events.includes('offline'), events.join())
        await visitors.stop()
        await agent.close()
        await again(dying)
      })

      test('loses nothing when nodes stop one after another', async (t) => {
        const { agent, events, visitorsOf } = await start(t)
        await halves(nodes[0] as ClusterNode)
        for (const stopping of [...nodes]) {
          const other = nodes.find((node) => node !== stopping) ?? assert.fail()
          const visitors = await visitorsOf(other)
          const { code } = await stopping.server.stop()
          assert.equal(code, 0)
          await visitors.goOn()
          await again(stopping)
          await halves(other)
          await visitors.stop()
          assert.deepEqual(visitors.failed, [])
        }
        assert.ok(!events.includes('offline'), events.join())
        await agent.close()
      })
    },
    ['postgres'],
  )
})
