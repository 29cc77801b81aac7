/** Opens the limits that the data planes of a node count together, and the calls between them. */
import { join } from 'node:path'
import { shareCaps } from '../../data-plane/node-limits/share-caps.ts'
import { SharedBreakers } from '../../data-plane/node-limits/shared-breakers.ts'
import { SharedCounters } from '../../data-plane/node-limits/shared-counters.ts'
import type { WorkerCalls } from '../../data-plane/node-limits/worker-peers.ts'
import { RelayLinks } from '../../data-plane/remote/relay-links.ts'
import { dividedCounters, limitPartOf, undivided } from '../../lib/limits/divided-counters.ts'
import { ConnectionCaps } from '../../lib/net/connection-caps.ts'
import { Peers } from '../../link/calls/peers.ts'
import type { OpeningPlane } from './opening-plane.ts'

export function openNodeLimits({ settings, live, nodeId, planeId, folder, log, opened }: OpeningPlane) {
  // First the links to the other planes of this node, since all limits are counted over them.
  const links = new RelayLinks({ pathOf: (id) => folder && join(folder, `${id}.relay`), log })
  opened.defer(() => links.close())
  const peers = new Peers<WorkerCalls>({ self: planeId, channelTo: (id) => links.calls(id), log })

  const caps = {
    visitors: new ConnectionCaps({ limits: settings, door: 'visitors', log }),
    agents: new ConnectionCaps({ limits: settings, door: 'agents', log }),
    ssh: new ConnectionCaps({ limits: settings, door: 'ssh', log }),
  }
  for (const each of Object.values(caps)) {
    opened.defer(shareCaps(peers, each))
    opened.defer(() => each.close())
    live.whenChanged((next) => each.use(next))
  }

  const counters = new SharedCounters(peers)
  opened.defer(() => counters.close())
  let part = undivided
  return {
    ...{ links, peers, caps, counters },
    divided: dividedCounters(counters, () => (live.now.sharedLimits ? part : undivided)),
    breakers: new SharedBreakers(peers),
    /** Divides limits that all nodes share among this node and these. */
    divideAmong(others: readonly string[]) {
      part = limitPartOf(nodeId, others)
    },
  }
}
