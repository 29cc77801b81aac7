/** Rate limits that three nodes share (`--shared-limits`): together they let through what the limit says, no more. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ClusterNode, TestCluster } from '../../support/cluster.ts'
import { visitsOfAll } from '../../support/test-workers.ts'
import { until } from '../../support/until.ts'
import { visit } from '../../support/visitor.ts'

const CAPACITY = 30
const TRIES = 2 * CAPACITY
const name = 'limited.test'

/** With `--shared-limits` on. Stops the third node, which stays away. */
export function limitTests(cluster: () => TestCluster): void {
  const limit = { name: 'all', capacity: CAPACITY, rate: '600s', bucket_key: ["'all'"] }
  const policy = { inbound: [{ name: 'limit', actions: [{ type: 'rate-limit', config: limit }] }] }
  const statusAt = async (node: ClusterNode, path = '/'): Promise<number> =>
    (await visit(node.at(`https://${name}`), cluster(), { path })).status
  /** Whether all workers of a node serve the edge; visits to this path are not limited. */
  const serves = async (node: ClusterNode): Promise<boolean> => {
    for (let i = 0; i < visitsOfAll(); i++) if ((await statusAt(node, '/free').catch(() => 0)) !== 200) return false
    return true
  }
  /** How many of `TRIES` pass. */
  const passingAt = async (node: ClusterNode): Promise<number> => {
    const statuses = await Promise.all(Array.from({ length: TRIES }, () => statusAt(node)))
    assert.ok(
      statuses.every((status) => status === 200 || status === 429),
      String(statuses),
    )
    return statuses.filter((status) => status === 200).length
  }
  const around = (wanted: number, found: number, what: string): void =>
    assert.ok(Math.abs(found - wanted) <= wanted / 10, `${what}: ${found} instead of ${wanted}`)

  test('let their shares through, and later that of a node that is gone', async () => {
    const [first, second, third] = cluster().nodes
    const { api } = first
    const { id: backend_id } = await api.create('/backends/http_response', { body: 'through' })
    const { id } = await api.create('/edges/https', { hostports: [`${name}:443`] })
    const match = { match_type: 'path_prefix', match: '/' }
    const free = { match_type: 'exact_path', match: '/free' }
    await api.create(`/edges/https/${id}/routes`, { ...match, backend: { backend_id }, policy })
    await api.create(`/edges/https/${id}/routes`, { ...free, backend: { backend_id } })
    let total = 0
    for (const node of cluster().nodes) {
      await until(`${node.name} serves it`, () => serves(node))
      const passed = await passingAt(node)
      around(CAPACITY / 3, passed, node.name)
      total += passed
    }
    around(CAPACITY, total, 'all')

    const body = { edge_id: id, request: { url: '/' } }
    const explained = async () => (await api.send('POST', '/policy/explain', { body })).body.outcome.error_code
    assert.equal(await explained(), 'ERR_RATE_LIMITED')

    third.server.kill('SIGTERM')
    await third.server.ended
    // Earlier counts still apply: each has half of the limit now, of which a third of the whole is used up.
    for (const node of [first, second]) {
      let passed = 0
      await until(`${node.name} has a larger share`, async () => {
        passed += await passingAt(node)
        return passed > 0
      })
      // The node may have got its larger share while those requests were under way.
      passed += await passingAt(node)
      around(CAPACITY / 2 - CAPACITY / 3, passed, node.name)
      assert.equal(await passingAt(node), 0)
    }
  })
}
