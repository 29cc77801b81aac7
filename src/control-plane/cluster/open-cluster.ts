/** Opens the cluster for the data planes of this server. */

import type { Logger } from '../../lib/log/create-log.ts'
import type { Sealer } from '../../lib/secrets/seal.ts'
import type { AttachedPlanes } from '../mirrors/attached-planes.ts'
import type { Store } from '../store/store.ts'
import { exchangesHere, readAsk } from '../traffic/node-exchanges.ts'
import { isPeriod, type TrafficHistory } from '../traffic/traffic-counts.ts'
import { Cluster } from './cluster.ts'
import type { NodeFacts } from './node-lease.ts'
import { readChallenge } from './read-challenge.ts'

interface OpenClusterOptions {
  readonly store: Store
  readonly sealer: Sealer
  readonly log: Logger
  readonly node: Omit<NodeFacts, 'sessions' | 'isLeaving'>
}

interface OwnPlanes {
  readonly planes: AttachedPlanes
  readonly history: TrafficHistory
}

/** Call `attach` before the cluster starts: the data planes of this node are built after it, since they ask it. */
export function openCluster({ store, sealer, log, node }: OpenClusterOptions) {
  let attached: OwnPlanes | undefined
  const own = (): OwnPlanes => {
    if (!attached) throw new Error('no data planes are attached to the cluster')
    return attached
  }
  const planes = () => own().planes
  const cluster = new Cluster({
    ...{ store, sealer, log, node },
    here: {
      held: {
        session: (id) => planes().directory.heldSession(id),
        tunnel: (id) => planes().directory.heldTunnel(id),
        places: (place) => planes().directory.heldAddresses(place),
        tunnelsOf: (sessionId) => planes().directory.heldTunnelsOf(sessionId),
      },
      sessions: () => planes().directory.sessionCount,
      announce: () => planes().directory.announce(),
      stopTaken: (tunnelId) => planes().stopTaken(tunnelId),
      nodesChanged: (others) => planes().nodesChanged(others),
      callNode: (nodeId, value) => planes().callNode(nodeId, value),
      command: (sessionId, command) => planes().presence.command(sessionId, command),
      endSession: (sessionId) => planes().sessionCameBack(sessionId),
      proveAlive: (sessionId) => planes().proveSessionAlive(sessionId),
      exchanges: async (ask) => exchangesHere(planes())(readAsk(ask)),
      traffic: async (period) => (isPeriod(period) ? own().history.points(period) : []),
      showChallenge: async (asked) => {
        const challenge = readChallenge(asked)
        return challenge !== undefined && planes().showChallenge(challenge)
      },
    },
  })
  return {
    cluster,
    attach: (given: OwnPlanes): void => {
      attached = given
    },
  }
}
