/** This node as others know it: decided by the process that holds its sockets, and the same for all of its processes. */
import { type Clock, timestamp } from '../../lib/clock.ts'
import type { IdSource } from '../../lib/ids.ts'
import type { Listen } from './parse-value.ts'
import type { Settings } from './read-settings.ts'

/** What stays the same for the life of a node, even when its processes are replaced. */
export interface NodeLife {
  readonly nodeId: string
  /** When it started, RFC 3339. */
  readonly nodeSince: string
}

export interface OwnNode extends NodeLife {
  /** Where other nodes reach it, as `host:port`; null without other nodes. */
  readonly clusterAddress: string | null
  /** Where agents reach this particular node, as `host:port`; null without other nodes. */
  readonly agentAddress: string | null
}

/** A node that starts now. */
export function newNode({ ids, now }: { readonly ids: IdSource; readonly now: Clock }): NodeLife {
  return { nodeId: ids.next('nd_'), nodeSince: timestamp(now()) }
}

/** `ports`: the actual ports of the listeners, which count where the system chose them. */
export function ownNode(
  life: NodeLife,
  { clusterAddress, agentAddress }: Pick<Settings, 'clusterAddress' | 'agentAddress'>,
  ports: { readonly cluster: number; readonly agent: number },
): OwnNode {
  return {
    ...life,
    clusterAddress: clusterAddress && addressText(clusterAddress, ports.cluster),
    agentAddress: agentAddress && addressText(agentAddress, ports.agent),
  }
}

function addressText({ host, port }: Listen, chosen: number): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port || chosen}`
}
