/** The endpoints of edges, one for each hostport, listed with those of agents. */
import { createHash } from 'node:crypto'
import type { Logger } from '../../lib/log/create-log.ts'
import { publicAuthority } from '../../lib/net/public-authority.ts'
import { Shelf } from '../../lib/sorted-id-map.ts'
import { ownTurn } from '../../lib/threads/others-turn.ts'
import { readHostport } from '../../model/hostport.ts'
import type { Presence, PresencePage, PresentEndpoint } from '../../model/presence.ts'
import { TakenAddresses } from '../records/taken-addresses.ts'
import type { Change } from '../store/feed.ts'
import type { Followed } from '../store/feed-follower.ts'
import type { StoredResource } from '../store/reader.ts'
import type { Store } from '../store/store.ts'
import { edgeResources } from './edge-configs.ts'

/** How many characters of an edge's id its endpoints share; the rest distinguishes its hostports. */
const SHARED_CHARACTERS = 17
const OWN_CHARACTERS = 10

/** How many edges are read at once. */
const AT_A_TIME = 1000

export class EdgeEndpoints implements Followed {
  readonly #store: Store
  readonly #region: string
  readonly #log: Logger
  readonly #addresses: TakenAddresses
  readonly #endpoints = new Shelf<PresentEndpoint>()
  readonly #byEdge = new Map<string, readonly string[]>()

  constructor({ store, region, log }: { store: Store; region: string; log: Logger }) {
    this.#store = store
    this.#region = region
    this.#log = log
    this.#addresses = new TakenAddresses(store)
  }

  async load(): Promise<void> {
    const gone = new Set(this.#byEdge.keys())
    for (const kind of edgeResources.keys()) {
      let beforeId: string | undefined
      do {
        const some = await this.#store.read((reader) =>
          reader.page({ kind, limit: AT_A_TIME, ...(beforeId !== undefined && { beforeId }) }),
        )
        for (const edge of some) {
          gone.delete(edge.id)
          this.#list(edge)
        }
        beforeId = some.at(-1)?.id
        await ownTurn()
      } while (beforeId !== undefined)
    }
    for (const id of gone) this.delete(id)
  }

  async apply(changes: readonly Change[]): Promise<void> {
    const ids = [...new Set(changes.filter(({ kind }) => edgeResources.has(kind)).map(({ id }) => id))]
    if (ids.length === 0) return
    const found = await this.#store.read((reader) => reader.resources(ids))
    const there = new Set(found.map(({ id }) => id))
    for (const id of ids) if (!there.has(id)) this.delete(id)
    for (const edge of found) this.#list(edge)
  }

  /** Updates the endpoints of an edge. */
  set(edge: StoredResource): void {
    const endpoints = this.#endpointsOf(edge)
    const ids = new Set(endpoints.map(({ id }) => id))
    // Most changes keep the hostports, and kept entries cost least.
    for (const id of this.#byEdge.get(edge.id) ?? []) if (!ids.has(id)) this.#endpoints.delete(id)
    for (const endpoint of endpoints) this.#endpoints.add(endpoint.id, endpoint)
    if (ids.size > 0) this.#byEdge.set(edge.id, [...ids])
    else this.#byEdge.delete(edge.id)
  }

  delete(edgeId: string): void {
    for (const id of this.#byEdge.get(edgeId) ?? []) this.#endpoints.delete(id)
    this.#byEdge.delete(edgeId)
  }

  /** The presence, with these endpoints among those of agents. */
  beside(presence: Presence): Presence {
    return {
      nodes: (page) => presence.nodes(page),
      node: (id) => presence.node(id),
      sessions: (page) => presence.sessions(page),
      session: (id) => presence.session(id),
      tunnels: (page) => presence.tunnels(page),
      tunnel: (id) => presence.tunnel(id),
      tunnelsWith: (labels) => presence.tunnelsWith(labels),
      command: (sessionId, command) => presence.command(sessionId, command),
      endpoints: (page) => this.#merged(page, presence),
      endpoint: async (id) => {
        const own = this.#endpoints.get(id)
        return own ? this.#withReservation(own) : presence.endpoint(id)
      },
    }
  }

  #list(edge: StoredResource): void {
    try {
      this.set(edge)
    } catch (error) {
      this.delete(edge.id)
      this.#log.warn({ err: error, edge: edge.id }, 'cannot list the endpoints of an edge')
    }
  }

  async #merged(page: PresencePage, presence: Presence): Promise<PresentEndpoint[]> {
    const agents = await presence.endpoints(page)
    const first = [...agents, ...this.#endpoints.page(page)].sort((a, b) => (a.id < b.id ? 1 : -1)).slice(0, page.limit)
    return Promise.all(first.map(async (each) => (each.type === 'edge' ? this.#withReservation(each) : each)))
  }

  async #withReservation(endpoint: PresentEndpoint): Promise<PresentEndpoint> {
    const { host, port } = readHostport(endpoint.hostport)
    const isTcp = endpoint.proto === 'tcp'
    const { reservationId } = await (isTcp ? this.#addresses.holdersOfPort(port) : this.#addresses.holdersOfName(host))
    if (reservationId === undefined) return endpoint
    return { ...endpoint, ...(isTcp ? { tcpAddrId: reservationId } : { domainId: reservationId }) }
  }

  #endpointsOf({ id, kind, fields, createdAt }: StoredResource): PresentEndpoint[] {
    const proto = edgeResources.get(kind)?.kind
    // Only agents have endpoints on the plain listener.
    if (proto === undefined || proto === 'http') return []
    // What is stored has passed the form of its resource.
    return (fields.hostports as readonly string[]).map((hostport) => {
      const { host, port } = readHostport(hostport)
      return {
        id: endpointId(id, hostport),
        region: this.#region,
        createdAt,
        updatedAt: createdAt,
        publicUrl: `${proto}://${publicAuthority(proto, host, port)}`,
        proto,
        hostport,
        type: 'edge',
        name: '',
        description: String(fields.description),
        metadata: String(fields.metadata),
        edgeId: id,
      }
    })
  }
}

/** An id that is the same after every start and on every node, and sorts by the creation of its edge. */
function endpointId(edgeId: string, hostport: string): string {
  const shared = edgeId.slice(edgeId.indexOf('_') + 1).slice(0, SHARED_CHARACTERS)
  const own = createHash('sha256').update(`${edgeId} ${hostport}`).digest('hex').slice(0, OWN_CHARACTERS)
  return `ep_${shared}${own}`
}
