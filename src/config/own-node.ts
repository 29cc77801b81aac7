/** This node as others know it: settled by whoever holds its sockets, and the same for all of its processes. */
import { type Clock, timestamp } from '../lib/clock.ts'
import type { IdSource } from '../lib/ids.ts'
import type { Listen } from './parse.ts'
import type { Settings } from './read.ts'

/** What a node is for its whole life, whichever of its processes are replaced. */
export interface NodeLife {
  readonly nodeId: string
  /** When it started, RFC 3339. */
  readonly nodeSince: string
}

export interface OwnNode extends NodeLife {
  /** Where other nodes reach it, as `host:port`; null when it is on its own. */
  readonly clusterAddress: string | null
  /** Where agents reach this very node, as `host:port`; null when it is on its own. */
  readonly agentAddress: string | null
}

/** A node that starts now. */
export function newNode({ ids, now }: { readonly ids: IdSource; readonly now: Clock }): NodeLife {
  return { nodeId: ids.next('nd_'), nodeSince: timestamp(now()) }
}

/** `ports`: those that the listeners have, which matters where the system chose them. */
export function ownNode(
  life: NodeLife,
  { clusterAddress, agentAddress }: Pick<Settings, 'clusterAddress' | 'agentAddress'>,
  ports: { readonly cluster: number; readonly agent: number },
): OwnNode {
  return {
    ...life,
    clusterAddress: clusterAddress && placeText(clusterAddress, ports.cluster),
    agentAddress: agentAddress && placeText(agentAddress, ports.agent),
  }
}

function placeText({ host, port }: Listen, chosen: number): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port || chosen}`
}
