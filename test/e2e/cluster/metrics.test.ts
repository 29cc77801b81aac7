/** The metrics of nodes about each other, on a good day and while the database is down. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, test } from 'node:test'
import { agentAt, type ClusterNode, startCluster } from '../../support/cluster.ts'
import { eachStore } from '../../support/databases.ts'
import { metric } from '../../support/metrics.ts'
import { openGate } from '../../support/tcp-gate.ts'
import { until } from '../../support/until.ts'
import { tcpUpstream } from '../../support/upstream.ts'
import { dialTcp, visit } from '../../support/visitor.ts'

const read = ({ server }: ClusterNode, name: string): Promise<number> =>
  metric(server.metricsUrl, `postern_cluster_${name}`)

describe('the metrics of three nodes', () => {
  eachStore(
    (store) => {
      test('show the traffic between them, and what is wrong while the database is down', async (t) => {
        const url = new URL(await store.url())
        const gate = await openGate(Number(url.port))
        t.after(() => gate.shut())
        const { nodes, ca, ...rest } = await startCluster(t, {
          databaseUrl: Object.assign(url, { port: String(gate.port) }).href,
        })
        const [home, away] = nodes
        for (const node of nodes) {
          await until(`${node.name} knows all nodes`, async () => (await read(node, 'nodes')) === 3)
          assert.equal(await read(node, 'lease_held'), 1)
          assert.ok((await read(node, 'lease_age_seconds')) < 10)
          await until(`${node.name} has nothing to write`, async () => (await read(node, 'rows_waiting')) === 0)
          assert.equal(await read(node, 'lookup_failures_total'), 0)
        }

        const echo = await tcpUpstream(t)
        const agent = await agentAt(t, { nodes, ca, ...rest }, home)
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
        // A name that nothing serves, so that its certificate is not accepted.
        const ask = (name: string) => visit(away.at(`https://${name}`), { ca }).catch(() => undefined)
        const before = await read(away, 'lookups_total')
        await ask('nobody.test')
        assert.ok((await read(away, 'lookups_total')) > before)

        await gate.shut()
        await ask('nobody-else.test')
        assert.ok((await read(away, 'lookup_failures_total')) > 0)
        await tunnel.close()
        await until('rows wait', async () => (await read(home, 'rows_waiting')) > 0)
        await until('the lease runs out', async () => (await read(home, 'lease_held')) === 0)
        assert.ok((await read(home, 'lease_age_seconds')) >= 10)

        await gate.open()
        for (const node of nodes) {
          await until(`${node.name} has its lease back`, async () => (await read(node, 'lease_held')) === 1)
          await until(`${node.name} has written all`, async () => (await read(node, 'rows_waiting')) === 0)
          await until(`${node.name} knows all nodes again`, async () => (await read(node, 'nodes')) === 3)
        }
      })
    },
    ['postgres'],
  )
})
