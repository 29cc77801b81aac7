/** The database is away for longer than a lease: visitors notice nothing, neither then nor when it is back. */
import assert from 'node:assert/strict'
import { after, before, describe, type TestContext, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { agentAt, listed } from '../../support/cluster.ts'
import { eachStore } from '../../support/databases.ts'
import { type GatedCluster, type GatedNode, startGatedCluster } from '../../support/gated-cluster.ts'
import { metric } from '../../support/metrics.ts'
import { until } from '../../support/until.ts'
import { httpUpstream, type Owner, tcpUpstream } from '../../support/upstream.ts'
import { dialTcp, visit } from '../../support/visitor.ts'
import { Visitors } from '../../support/visitors.ts'

/** How long a lease lasts, in seconds. */
const LEASE_S = 10

/** How much later each node reaches the database again, in milliseconds: nodes try at different times. */
const APART_MS = 300

describe('a database that is away for longer than a lease', () => {
  eachStore(
    (stores) => {
      const closers: (() => unknown)[] = []
      const owner: Owner = { after: (close) => void closers.unshift(close) }
      let cluster: GatedCluster
      before(async () => {
        cluster = await startGatedCluster(owner, { databaseUrl: await stores.url() })
      })
      after(async () => {
        for (const close of closers) await close()
      })

      /** Visitors at each of `nodes`, of an agent at `at`, all of whom have been served. */
      const visitorsOf = async (t: TestContext, at: GatedNode, nodes: readonly GatedNode[]) => {
        const service = await httpUpstream(t, (_, response) => response.end('served'))
        const echo = await tcpUpstream(t)
        const agent = await agentAt(t, cluster, at)
        const { url: web } = await agent.forward({ addr: service.port })
        const { url: tcp } = await agent.forward({ addr: echo.port, proto: 'tcp' })
        return Promise.all(
          nodes.map(async (node) => {
            const isOpen = () => dialTcp(node.at(tcp)).catch(() => undefined)
            await until('the port is open', isOpen).then((socket) => socket.destroy())
            const visitors = new Visitors({ web: node.at(web), tcp: node.at(tcp), ca: cluster.ca })
            t.after(() => visitors.stop())
            await visitors.goOn()
            return visitors
          }),
        )
      }
      const namesAt = async (node: GatedNode): Promise<string[]> =>
        (await node.api.get('/nodes')).nodes.map(({ name }: { name: string }) => name)
      const leaseAge = (node: GatedNode) => metric(node.server.metricsUrl, 'postern_cluster_lease_age_seconds')

      test('is not noticed by visitors, and its return neither', async (t) => {
        const visitors = await visitorsOf(t, cluster.nodes[1], cluster.nodes)
        for (const { gates } of cluster.nodes) await gates.database.shut()
        for (const node of cluster.nodes)
          await until('its lease has expired', async () => (await leaseAge(node)) > LEASE_S)
        for (const each of visitors) await each.goOn()
        for (const { gates } of cluster.nodes) {
          await gates.database.open()
          await pause(APART_MS)
        }
        for (const node of cluster.nodes) {
          await until('it knows all nodes', async () => (await namesAt(node)).length === 3)
          await until('it lists all', async () => (await listed(node, 'tunnels')).length === 2)
        }
        for (const each of visitors) await each.goOn()
        await Promise.all(visitors.map((each) => each.stop()))
        assert.deepEqual(
          visitors.flatMap(({ failed }) => failed),
          [],
        )
      })

      test('at two nodes in turn does not keep one from reaching the other', async (t) => {
        const [first, second, third] = cluster.nodes
        const service = await httpUpstream(t, (_, response) => response.end('served'))
        const agent = await agentAt(t, cluster, second)
        const { url } = await agent.forward({ addr: service.port })
        const statusAt = async (node: GatedNode): Promise<number> => (await visit(node.at(url), cluster)).status
        assert.equal(await statusAt(third), 200)
        await second.gates.database.shut()
        await until('its address is free', async () => (await statusAt(third)) === 404)
        await third.gates.database.shut()
        await second.gates.database.open()
        await until('the first hears of it again', async () => (await statusAt(first)) === 200)
        assert.equal(await statusAt(third), 200)
        await third.gates.database.open()
        await until('it knows all nodes', async () => (await namesAt(third)).length === 3)
        assert.equal(await statusAt(third), 200)
      })
    },
    ['postgres'],
  )
})
