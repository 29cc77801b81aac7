/** The traffic history of all nodes: each has its own, and the node that is asked adds them up. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from '../../lib/log/create-log.ts'
import type { OtherNode } from '../../link/planes/plane-calls.ts'
import type { Fields } from '../resources/resource.ts'
import { type Period, showTraffic, type TrafficPoint } from './traffic-counts.ts'

interface TrafficNodes {
  readonly name: string
  readonly own: (period: Period) => readonly TrafficPoint[]
  /** The other nodes; undefined for a node on its own. */
  readonly cluster: OtherTraffic | undefined
  readonly log: Logger
}

interface OtherTraffic {
  readonly others: readonly OtherNode[]
  trafficAt(nodeId: string, period: Period): Promise<readonly TrafficPoint[]>
}

/** How long a node may take to answer, in milliseconds: a page without it is better than a late one. */
const ANSWER_MS = 2000

export async function trafficOfAll(period: Period, { name, own, cluster, log }: TrafficNodes): Promise<Fields> {
  const others = cluster?.others ?? []
  const points = new Map([[name, own(period)]])
  const missing: string[] = []
  await Promise.all(
    others.map(async (other) => {
      const late = pause(ANSWER_MS, undefined, { ref: false })
      const asked = cluster?.trafficAt(other.nodeId, period).catch((err: unknown) => {
        log.debug({ err, node: other.name }, 'cannot fetch the traffic history of a node')
      })
      const found = await Promise.race([asked, late])
      if (found) points.set(other.name, found)
      else missing.push(other.name)
    }),
  )
  return showTraffic(period, points, missing.toSorted())
}
