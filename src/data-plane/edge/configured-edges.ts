/** Serves stored edges beside the endpoints of agents, and decides which of the two has a contested name. */
import type { EdgeConfig } from '../../model/edge-config.ts'
import type { AgentEndpoints } from './agent-endpoints.ts'
import type { EdgeTable } from './edge-table.ts'

interface StoredEdgesOptions {
  readonly edges: Pick<EdgeTable, 'apply' | 'remove' | 'storedIds' | 'endpointAt'>
  readonly agents: Pick<AgentEndpoints, 'below'>
  /** Ends the tunnel of an agent and tells the agent why. */
  readonly stopTunnel: (tunnelId: string, why: { readonly message: string; readonly ngrok: number }) => unknown
}

/** The vendor's number for a name that belongs to an edge. */
const HELD_BY_EDGE = 381

export class ConfiguredEdges {
  readonly #options: StoredEdgesOptions

  constructor(options: StoredEdgesOptions) {
    this.#options = options
  }

  get storedIds(): Iterable<string> {
    return this.#options.edges.storedIds
  }

  /** Serves an edge as it is stored now, and ends endpoints of agents at its addresses and below its wildcards. */
  async apply(config: EdgeConfig, how?: { isIdle: boolean }): Promise<void> {
    const { edges, agents, stopTunnel } = this.#options
    // The API refuses such an edge too, unless the bind was under way, at this node or another.
    const addresses = [...config.names.map((name) => ({ name })), ...config.ports.map((port) => ({ port }))]
    const there = addresses.flatMap((address) => edges.endpointAt(address) ?? [])
    await edges.apply(config, how)
    const stop = (id: string, message: string) => stopTunnel(tunnelOf(id), { message, ngrok: HELD_BY_EDGE })
    for (const id of there) stop(id, `its address belongs to the edge ${config.id}`)
    const wildcards = config.names.filter(isWildcard)
    if (wildcards.length === 0) return
    // D66: names below a wildcard are the edge's now. The API refuses an edge while it sees an agent's endpoint online below a
    // wildcard of the edge. This is for agents of other nodes, and for binds under way, which are over by the next turn of the
    // event loop.
    setImmediate(() => {
      for (const id of wildcards.flatMap((name) => agents.below(name))) {
        stop(id, `its name stands below a wildcard that the edge ${config.id} holds`)
      }
    })
  }

  remove(id: string): void {
    this.#options.edges.remove(id)
  }

  /**
   * The endpoint of an agent that blocks an edge at this address: on the address itself, or below it if it is a
   * wildcard.
   */
  endpointAt(address: { readonly name: string } | { readonly port: number }): string | undefined {
    const { edges, agents } = this.#options
    const there = edges.endpointAt(address)
    if (there !== undefined || !('name' in address) || !isWildcard(address.name)) return there
    return agents.below(address.name)[0]
  }
}

function isWildcard(name: string): boolean {
  return name.startsWith('*.')
}

/** The tunnel of an endpoint. */
function tunnelOf(endpointId: string): string {
  return `tn_${endpointId.slice('ep_'.length)}`
}
