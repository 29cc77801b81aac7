/** The endpoints of edges, one for each hostport, listed with those of agents. */
import { createHash } from 'node:crypto'
import type { Logger } from '../../lib/log/create-log.ts'
import { publicAuthority } from '../../lib/net/public-authority.ts'
import { SortedIdMap } from '../../lib/sorted-id-map.ts'
import { othersTurn } from '../../lib/threads/others-turn.ts'
import { readHostport } from '../../model/hostport.ts'
import type { Presence, PresencePage, PresentEndpoint } from '../../model/presence.ts'
import { TakenAddresses } from '../records/taken-addresses.ts'
import { fieldsOf } from '../resources/resource.ts'
import type { StoredResource } from '../store/reader.ts'
import type { Store } from '../store/store.ts'
import { edgeResources } from './edge-configs.ts'
import { itemsOf, mirror } from './mirror.ts'

/** How many characters of an edge's id its endpoints share; the rest distinguishes its hostports. */
const SHARED_CHARACTERS = 17
const OWN_CHARACTERS = 10

export function edgeEndpoints({ store, region, log }: { store: Store; region: string; log: Logger }) {
  const addresses = new TakenAddresses(store)
  const endpoints = new SortedIdMap<PresentEndpoint>()
  const followed = mirror<readonly PresentEndpoint[]>({
    ...itemsOf(
      store,
      [...edgeResources.values()].map(({ resource }) => resource),
      (edge) => {
        try {
          return endpointsOf(edge, region)
        } catch (error) {
          log.warn({ err: error, edge: edge.id }, 'cannot list the endpoints of an edge')
          return undefined
        }
      },
    ),
    async send({ isAll, removed, set }) {
      const breath = othersTurn()
      const before = isAll ? [...endpoints.values()] : [...removed.values()].flat()
      const after = new Map([...set.values()].flat().map((each) => [each.id, each]))
      // Most changes keep the hostports, and kept entries cost least.
      for (const { id } of before) if (!after.has(id)) endpoints.delete(id)
      for (const [id, endpoint] of after) {
        endpoints.add(id, endpoint)
        await breath()
      }
    },
  })

  const withReservation = async (endpoint: PresentEndpoint): Promise<PresentEndpoint> => {
    const { host, port } = readHostport(endpoint.hostport)
    const isTcp = endpoint.proto === 'tcp'
    const { reservationId } = await (isTcp ? addresses.holdersOfPort(port) : addresses.holdersOfName(host))
    if (reservationId === undefined) return endpoint
    return { ...endpoint, ...(isTcp ? { tcpAddrId: reservationId } : { domainId: reservationId }) }
  }
  const mergePages = async (page: PresencePage, presence: Presence): Promise<PresentEndpoint[]> => {
    const agents = await presence.endpoints(page)
    const first = [...agents, ...endpoints.page(page)].sort((a, b) => (a.id < b.id ? 1 : -1)).slice(0, page.limit)
    return Promise.all(first.map(async (each) => (each.type === 'edge' ? withReservation(each) : each)))
  }
  return {
    ...followed,
    /** The presence, with these endpoints among those of agents. */
    beside: (presence: Presence): Presence => ({
      ...presence,
      endpoints: (page) => mergePages(page, presence),
      endpoint: async (id) => {
        const own = endpoints.get(id)
        return own ? withReservation(own) : presence.endpoint(id)
      },
    }),
  }
}

function endpointsOf(edge: StoredResource, region: string): PresentEndpoint[] {
  const known = edgeResources.get(edge.kind)
  // Only agents have endpoints on the plain listener.
  if (!known || known.kind === 'http') return []
  const { id: edgeId, createdAt } = edge
  const { kind: proto, resource } = known
  const { hostports, description, metadata } = fieldsOf(resource, edge)
  return hostports.map((hostport) => {
    const { host, port } = readHostport(hostport)
    return {
      id: endpointId(edgeId, hostport),
      region,
      createdAt,
      updatedAt: createdAt,
      publicUrl: `${proto}://${publicAuthority(proto, host, port)}`,
      proto,
      hostport,
      type: 'edge',
      name: '',
      description,
      metadata,
      edgeId,
    }
  })
}

/** An id that is the same after every start and on every node, and sorts by the creation of its edge. */
function endpointId(edgeId: string, hostport: string): string {
  const shared = edgeId.slice(edgeId.indexOf('_') + 1).slice(0, SHARED_CHARACTERS)
  const own = createHash('sha256').update(`${edgeId} ${hostport}`).digest('hex').slice(0, OWN_CHARACTERS)
  return `ep_${shared}${own}`
}
