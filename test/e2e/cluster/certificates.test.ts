/** Three nodes that order certificates at once, one of which dies while ordering. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startAcmeServer } from '../../support/acme-server.ts'
import { queryDatabase } from '../../support/change-database.ts'
import { type ClusterNode, startCluster } from '../../support/cluster.ts'
import { eachStore } from '../../support/databases.ts'
import { until } from '../../support/until.ts'

const portOf = (address: string): number => Number(address.slice(address.lastIndexOf(':') + 1))

const portsOf = ({ server }: ClusterNode) => ({ httpPort: portOf(server.http), httpsPort: portOf(server.https) })

eachStore(
  (store) => {
    test('three nodes order each name once, and others continue the orders of a dead one', async (t) => {
      const acme = await startAcmeServer()
      t.after(() => acme.stop())
      const flags = { 'acme-directory': acme.directory, workers: '0' }
      const databaseUrl = await store.url()
      const { nodes } = await startCluster(t, { databaseUrl, flags })
      acme.mood.nodes = nodes.map(portsOf)
      // At most four for each node, which is how many it works on at once, so that all of them are under way.
      const names = Array.from({ length: 11 }, (_, i) => `n${i}.example.com`)
      const last = 'last.example.com'
      const held = Promise.withResolvers<void>()
      t.after(() => held.resolve())
      const reached = new Set<string>()
      acme.mood.before = async (step, name) => {
        if (step !== 'challenge') return
        reached.add(name)
        await held.promise
      }
      await Promise.all(names.map((name, i) => create(nodes[i % 3], name)))
      await until('every name is being proven', () => reached.size === names.length)

      // The node of the last name dies after the authority has created the order, and before it answers.
      let killed: ClusterNode | undefined
      acme.mood.after = async (step, name) => {
        if (step !== 'order' || name !== last || killed) return
        killed = await nodeOf(last)
        killed.server.kill('SIGKILL')
        await killed.server.ended
        throw new Error('the node was killed')
      }
      await create(nodes[0], last)
      const dead = await until('a node was killed', () => killed)
      await dead.server.ended
      const alive = nodes.filter((each) => each !== dead)
      const { api } = alive.at(0) ?? assert.fail('no node is alive')
      acme.mood.nodes = alive.map(portsOf)
      acme.mood.after = undefined
      held.resolve()
      await until('every name has its certificate', async () => {
        const { tls_certificates: all } = await api.get('/tls_certificates')
        assert.ok(all.length <= names.length + 1, 'one certificate for each name')
        return all.length === names.length + 1
      })
      const ordered = (name: string) => acme.orders.filter((each) => each.name === name).length
      assert.deepEqual(
        names.map((name) => [name, ordered(name)]),
        names.map((name) => [name, 1]),
      )
      assert.equal(ordered(last), 2, 'no node could know of the first order')
      assert.equal(acme.accounts, 1)

      async function create(node: ClusterNode | undefined, name: string): Promise<void> {
        await node?.api.create('/edges/https', { hostports: [`${name}:443`] })
      }

      /** The node that works on a name, found by the log: it shows what else each has ordered. */
      async function nodeOf(name: string): Promise<ClusterNode> {
        const rows = await queryDatabase(databaseUrl, 'select name, holder from managed_names')
        const holder = rows.find((row) => row.name === name)?.holder
        const others = rows.filter((row) => row.holder === holder && row.name !== name).map((row) => String(row.name))
        const found = nodes.find(({ server }) => others.some((other) => hasOrdered(server.log(), other)))
        assert.ok(found, `none of the nodes has ordered ${others.join()}`)
        return found
      }
    })
  },
  ['postgres'],
)

function hasOrdered(log: string, name: string): boolean {
  return log.split('\n').some((line) => line.includes('certificate ordered') && line.includes(`"${name}"`))
}
