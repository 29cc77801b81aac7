import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Registry } from '@prometheus-io/client'
import { sumOf } from '../../model/plane-metrics.ts'
import { metricsPage } from './metrics.ts'
import { registerCluster } from './server-metrics.ts'

const { totals, present, ...rest } = sumOf([])
const planes = {
  ...rest,
  totals: { ...totals, toNodes: 7, fromNodes: 5, unreachedNodes: 2, lookUps: 9, failedLookUps: 1 },
  present: { ...present, linksToNodes: 2, linksFromNodes: 3, streamsToNodes: 6, streamsFromNodes: 4, standbys: 1 },
}

test('the page shows the lease of this node, its links to others, and its look-ups', async () => {
  const registry = new Registry()
  const cluster = () => ({ nodes: 3, isLeaseHeld: true, leaseAgeMs: 1500, waitingRows: 8 })
  registerCluster(registry, cluster, () => planes)
  const page = await metricsPage(registry)
  const values = page.split('\n').filter((line) => line && !line.startsWith('#'))
  assert.deepEqual(values, [
    'postern_cluster_nodes 3',
    'postern_cluster_lease_held 1',
    'postern_cluster_lease_age_seconds 1.5',
    'postern_cluster_rows_waiting 8',
    'postern_cluster_standbys 1',
    'postern_cluster_links{way="to"} 2',
    'postern_cluster_links{way="from"} 3',
    'postern_cluster_streams{way="to"} 6',
    'postern_cluster_streams{way="from"} 4',
    'postern_cluster_streams_total{way="to"} 7',
    'postern_cluster_streams_total{way="from"} 5',
    'postern_cluster_unreached_total 2',
    'postern_cluster_lookups_total 9',
    'postern_cluster_lookup_failures_total 1',
  ])
  assert.equal(await metricsPage(registry), page)
})

test('a lost lease is shown', async () => {
  const registry = new Registry()
  const cluster = () => ({ nodes: 1, isLeaseHeld: false, leaseAgeMs: 12_000, waitingRows: 0 })
  registerCluster(registry, cluster, () => planes)
  assert.match(await metricsPage(registry), /^postern_cluster_lease_held 0$/m)
})
