/** Opens the cluster for the data planes of this server. */
import type { Duplex } from 'node:stream'
import { Cluster } from '../../control-plane/cluster/cluster.ts'
import { readChallenge } from '../../control-plane/cluster/cluster-calls.ts'
import { LeaseKeeper } from '../../control-plane/cluster/lease-keeper.ts'
import type { NodeFacts } from '../../control-plane/cluster/node-lease.ts'
import type { AttachedPlanes } from '../../control-plane/mirrors/attached-planes.ts'
import type { Store } from '../../control-plane/store/store.ts'
import { exchangesHere, readAsk } from '../../control-plane/traffic/node-exchanges.ts'
import { isPeriod, type TrafficHistory } from '../../control-plane/traffic/traffic-counts.ts'
import type { Logger } from '../../lib/log/create-log.ts'
import type { Sealer } from '../../lib/secrets/seal.ts'
import { Authority } from '../../lib/x509/certificate-authority.ts'
import { type AddressHolder, askNode, type ServedAnswer } from '../../link/planes/ask-node.ts'
import { createNodeIdentity } from '../../link/planes/node-identity.ts'
import { NodeLinks } from '../../link/planes/node-links.ts'
import { AnsweredCalls } from '../../link/planes/passed-calls.ts'
import type { OtherNode } from '../../link/planes/plane-calls.ts'

/** How long a call to another node may take, in milliseconds: agents have 10 s to obey a command. */
const CALL_MS = 12_000

/** How long a node that has lost its lease may take to say what it has, in milliseconds: an agent waits for its address. */
const ASK_MS = 3000

interface ClusterOptions {
  readonly store: Store
  readonly sealer: Sealer
  readonly log: Logger
  readonly node: Omit<NodeFacts, 'sessions' | 'isLeaving'>
  /** How other nodes are called, and how one that is gone is forgotten. */
  readonly links: Pick<NodeLinks, 'call' | 'forget'>
  /** See `askNode`. */
  readonly askServed: (node: OtherNode, holders: readonly AddressHolder[]) => Promise<ServedAnswer>
  /** A clock that never jumps, in milliseconds, for tests. */
  readonly now?: () => number
}

interface OpenClusterOptions extends Omit<ClusterOptions, 'links' | 'askServed'> {
  /** The authority that all nodes share, in PEM. */
  readonly authority: { readonly cert: string; readonly key: string }
  readonly databaseUrl: string
}

interface OwnPlanes {
  readonly planes: AttachedPlanes
  readonly history: TrafficHistory
}

export function openCluster({ authority: { cert, key }, databaseUrl, ...options }: OpenClusterOptions) {
  const { node, log, store } = options
  const at: { cluster: Cluster | undefined } = { cluster: undefined }
  const identity = createNodeIdentity({ nodeId: node.id, planeId: 'control' }, new Authority(cert, key))
  const links = new NodeLinks({
    identity,
    addressOf: (id) => at.cluster?.reached.find(({ nodeId }) => nodeId === id)?.address,
    log,
  })
  const { cluster, attach } = clusterOf({
    ...{ ...options, links },
    askServed: (other, holders) => askNode({ identity, node: other, holders, withinMs: ASK_MS }),
  })
  at.cluster = cluster
  const answered = new AnsweredCalls({ answer: (_, value) => cluster.answer(value), log })
  return {
    ...{ cluster, attach },
    /** Takes the lease, and keeps it while this process is busy; returns a function that ends the latter. */
    async start(): Promise<() => Promise<void>> {
      await cluster.start()
      const keeper = store.dialect === 'postgres' ? new LeaseKeeper({ databaseUrl, nodeId: node.id, log }) : undefined
      return async () => keeper?.close()
    },
    /** Takes a connection of a data plane with calls of other nodes. */
    takeCalls: (connection: Duplex) => answered.take(connection),
    /** Neither calls nor answers other nodes any more. */
    closeCalls() {
      links.close()
      answered.close()
    },
  }
}

/** Call `attach` before the cluster starts: the data planes of this node are built after it, since they ask it. */
export function clusterOf({ store, sealer, log, node, links, askServed, now }: ClusterOptions) {
  let attached: OwnPlanes | undefined
  const own = (): OwnPlanes => {
    if (!attached) throw new Error('no data planes are attached to the cluster')
    return attached
  }
  const planes = () => own().planes
  const cluster = new Cluster({
    ...{ store, sealer, log, node },
    ...(now && { now }),
    here: {
      held: {
        session: (id) => planes().directory.heldSession(id),
        tunnel: (id) => planes().directory.heldTunnel(id),
        addresses: (place) => planes().directory.heldAddresses(place),
        tunnelsOf: (sessionId) => planes().directory.heldTunnelsOf(sessionId),
      },
      sessions: () => planes().directory.sessionCount,
      announce: () => planes().directory.announce(),
      stopTaken: (tunnelId) => planes().stopTaken(tunnelId),
      nodesChanged: (others) => planes().nodesChanged(others),
      nodeGone: (nodeId) => links.forget(nodeId),
      callNode: (nodeId, value) => links.call(nodeId, value, { withinMs: CALL_MS }),
      askServed,
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
