import assert from 'node:assert/strict'
import { test } from 'node:test'
import { IdSource } from '../../lib/ids.ts'
import { newNode, ownNode } from './own-node.ts'
import type { Listen } from './parse-value.ts'

const life = { nodeId: 'nd_1', nodeSince: '2026-01-01T00:00:00Z' }
const at = (host: string, port: number): Listen => ({ host, port })

test('a node has an id of its own and the time of its start', () => {
  const now = () => Date.UTC(2026, 0, 2, 3, 4, 5)
  const ids = new IdSource({ now })
  const { nodeId, nodeSince } = newNode({ ids, now })
  assert.match(nodeId, /^nd_[0-9A-Za-z]{27}$/)
  assert.equal(nodeSince, '2026-01-02T03:04:05Z')
  assert.notEqual(newNode({ ids, now }).nodeId, nodeId)
})

const rows: readonly [what: string, cluster: Listen | null, agent: Listen | null, reported: (string | null)[]][] = [
  ['ports of the settings', at('10.0.0.5', 7444), at('n1.example.com', 443), ['10.0.0.5:7444', 'n1.example.com:443']],
  ['ports that the system chose', at('::1', 0), at('127.0.0.1', 0), ['[::1]:41000', '127.0.0.1:42000']],
  ['nothing without other nodes', null, null, [null, null]],
]
for (const [what, clusterAddress, agentAddress, reported] of rows) {
  test(`others are told ${what}`, () => {
    const node = ownNode(life, { clusterAddress, agentAddress }, { cluster: 41000, agent: 42000 })
    assert.deepEqual(node, { ...life, clusterAddress: reported[0], agentAddress: reported[1] })
  })
}
