/** Nodes for tests of the cluster: each with a control plane's directory and one data plane that serves nobody. */

import { createLog } from '../../../lib/log/create-log.ts'
import type { AddressHolder, ServedAnswer } from '../../../link/planes/ask-node.ts'
import { clusterOf } from '../../../server/compose/open-cluster.ts'
import type { BindRules } from '../../directory/grant-binds.ts'
import { AttachedPlanes } from '../../mirrors/attached-planes.ts'
import type { SharedCalls } from '../../mirrors/shared-calls.ts'
import { TestPlane } from '../../mirrors/testing/test-planes.ts'
import { testSealer } from '../../records/testing/test-rows.ts'
import type { Store } from '../../store/store.ts'
import { TrafficHistory } from '../../traffic/traffic-counts.ts'
import type { Cluster } from '../cluster.ts'

const log = createLog({ level: 'silent', format: 'json', destination: { write() {} } })

/** All nodes of a test, by id: how they call each other. */
export type Nodes = Map<string, TestNode>

export class TestNode {
  readonly id: string
  readonly cluster: Cluster
  readonly planes: AttachedPlanes
  readonly history: TrafficHistory
  /** Whether other nodes can reach it. */
  isCut = false
  /** What its data planes say when other nodes ask which places they serve; by default what they have. */
  places: Exclude<ServedAnswer, readonly boolean[]> | 'as they are' = 'as they are'
  /** Runs before it says so. */
  whenAsked: (holders: readonly AddressHolder[]) => Promise<void> = async () => {}
  /** How often it called other nodes. */
  calls = 0
  readonly #nodes: Nodes

  constructor(nodes: Nodes, store: Store, id: string, clock?: () => number) {
    this.id = id
    this.#nodes = nodes
    const node = { id, name: id, address: '192.0.2.1:7444', region: id, version: '1', since: '2026-01-01T00:00:00Z' }
    const listed = { ...node, agentAddresses: [`${id}.example.com:7443`] }
    const links = {
      forget() {},
      call: async (nodeId: string, value: unknown): Promise<unknown> => {
        this.calls++
        const other = this.#nodes.get(nodeId)
        if (!other || other.isCut || this.isCut) throw new Error('the node cannot be reached')
        return other.cluster.answer(structuredClone(value))
      },
    }
    const { cluster, attach } = clusterOf({
      ...{ store, sealer: testSealer, log, node: listed, links },
      ...(clock && { now: clock }),
      askServed: async ({ nodeId }, holders) => {
        const other = this.#nodes.get(nodeId)
        if (!other) return 'refused'
        if (holders.length > 0) await other.whenAsked(holders)
        if (other.isCut || this.isCut) return 'silent'
        if (other.places !== 'as they are') return other.places
        return holders.map(({ tunnelId }) => other.planes.directory.heldTunnel(tunnelId) !== undefined)
      },
    })
    this.cluster = cluster
    this.planes = new AttachedPlanes({
      ...{ store, sealer: testSealer, log, node, nodes: this.cluster },
      calls: {} as SharedCalls,
      bindRules: { whyTakenInCluster: (reservation) => this.cluster.whyTaken(reservation) } as BindRules,
      checkCredentials: async () => {},
    })
    const clocks = { now: Date.now, steady: () => performance.now() }
    this.history = new TrafficHistory({ read: () => this.planes.metrics(), ...clocks, log })
    attach(this)
    nodes.set(id, this)
  }

  /** A data plane of this node. */
  async plane(given?: Parameters<TestPlane['attach']>[0]): Promise<TestPlane> {
    const plane = await new TestPlane(this.planes, 'w1').attach(given)
    await plane.ready()
    return plane
  }

  /** As after kill -9: nothing is given up. */
  async vanish(): Promise<void> {
    await this.planes.close()
    await this.cluster.pause()
  }

  async stop(): Promise<void> {
    await this.planes.close()
    await this.cluster.close()
  }
}
