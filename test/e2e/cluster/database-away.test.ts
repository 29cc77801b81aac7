/** The database is away, mostly for longer than a lease: visitors notice nothing, neither then nor when it is back. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, describe, type TestContext, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { agentAt, type ClusterNode, listed } from '../../support/cluster.ts'
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

/** A metric of a node about the cluster. */
const read = ({ server }: ClusterNode, name: string): Promise<number> =>
  metric(server.metricsUrl, `postern_cluster_${name}`)

describe('a database that is away', () => {
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

      /** A tunnel at `home` with a visitor at `away`, whom the metrics of both show. */
      const tellsOfTraffic = async (t: TestContext, home: GatedNode, away: GatedNode) => {
        const echo = await tcpUpstream(t)
        const agent = await agentAt(t, cluster, home)
        const tunnel = await agent.forward({ addr: echo.port, proto: 'tcp' })
        const visitor = await until('the port is open', () => dialTcp(away.at(tunnel.url)).catch(() => undefined))
        t.after(() => visitor.destroy())
        visitor.write('abc')
        await once(visitor, 'data')
        for (const [node, way] of [
          [away, 'to'],
          [home, 'from'],
        ] as const) {
          assert.equal(await read(node, `streams{way="${way}"}`), 1, node.name)
          assert.ok((await read(node, `streams_total{way="${way}"}`)) >= 1, node.name)
          assert.ok((await read(node, `links{way="${way}"}`)) >= 1, node.name)
        }
        return tunnel
      }

      test('is not noticed by visitors, nor is its return, and the metrics of the nodes tell of both', async (t) => {
        const [home, away] = cluster.nodes
        for (const node of cluster.nodes) {
          await until(`${node.name} knows all nodes`, async () => (await read(node, 'nodes')) === 3)
          assert.equal(await read(node, 'lease_held'), 1)
          assert.ok((await read(node, 'lease_age_seconds')) < LEASE_S)
          await until(`${node.name} has nothing to write`, async () => (await read(node, 'rows_waiting')) === 0)
          assert.equal(await read(node, 'lookup_failures_total'), 0)
        }
        const tunnel = await tellsOfTraffic(t, home, away)
        // A name that nothing serves, so that its certificate is not accepted.
        const ask = (name: string) => visit(away.at(`https://${name}`), cluster).catch(() => undefined)
        const before = await read(away, 'lookups_total')
        await ask('nobody.test')
        assert.ok((await read(away, 'lookups_total')) > before)

        const visitors = await visitorsOf(t, away, cluster.nodes)
        for (const { gates } of cluster.nodes) await gates.database.shut()
        await ask('nobody-else.test')
        assert.ok((await read(away, 'lookup_failures_total')) > 0)
        const unknown = await visit(away.at('http://nobody-knows.test'), cluster)
        assert.deepEqual([unknown.status, unknown.headers['retry-after']], [503, '1'], 'and not 404')
        await tunnel.close()
        await until('rows wait', async () => (await read(home, 'rows_waiting')) > 0)
        for (const node of cluster.nodes) {
          await until('its lease has expired', async () => (await read(node, 'lease_age_seconds')) > LEASE_S)
          await until('it knows that', async () => (await read(node, 'lease_held')) === 0)
        }
        for (const each of visitors) await each.goOn()
        for (const { gates } of cluster.nodes) {
          await gates.database.open()
          await pause(APART_MS)
        }
        for (const node of cluster.nodes) {
          await until(`${node.name} has its lease back`, async () => (await read(node, 'lease_held')) === 1)
          await until(`${node.name} has written all`, async () => (await read(node, 'rows_waiting')) === 0)
          await until('it knows all nodes', async () => (await namesAt(node)).length === 3)
          await until('its metrics say so', async () => (await read(node, 'nodes')) === 3)
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
        await until('its lease is lost', async () => (await namesAt(third)).length === 2)
        // It answers other nodes, so visitors are sent there (D56).
        assert.equal(await statusAt(third), 200)
        await third.gates.database.shut()
        await second.gates.database.open()
        await until('the first hears of it again', async () => (await statusAt(first)) === 200)
        assert.equal(await statusAt(third), 200)
        await third.gates.database.open()
        await until('it knows all nodes', async () => (await namesAt(third)).length === 3)
        assert.equal(await statusAt(third), 200)
      })

      test('keeps a standby from being used: the first node keeps the addresses, and gets the session back', async (t) => {
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

      // Last, since the node stays away.
      test('or not, a standby becomes the session of a node that dies, with its addresses, and the third node gets the next', async (t) => {
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
    },
    ['postgres'],
  )
})
