/** What three nodes do together while none of them fails. All of it is tested on one cluster: to start one takes seconds. */
import { describe } from 'node:test'
import { onThreeNodes, type TestCluster } from '../../support/cluster.ts'
import { edgeTests } from './edges.ts'
import { exchangeTests } from './exchanges.ts'
import { nameTests } from './names.ts'
import { poolTests } from './pools.ts'
import { presenceTests } from './presence.ts'
import { reachTests } from './reach.ts'

const suites: Readonly<Record<string, (cluster: () => TestCluster) => void>> = {
  // First, since it counts what is online.
  'presence at three nodes': presenceTests,
  'names on three nodes': nameTests,
  'edges on three nodes': edgeTests,
  'addresses of three nodes': reachTests,
  'a pool at three nodes': poolTests,
  'exchanges on three nodes': exchangeTests,
}

onThreeNodes((cluster) => {
  for (const [name, define] of Object.entries(suites)) describe(name, () => define(cluster))
})
