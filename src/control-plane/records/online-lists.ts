/** Reads and shows nodes, sessions, tunnels and endpoints for the API. */
import { shape } from '../../lib/shape/schema.ts'
import { othersTurn } from '../../lib/threads/others-turn.ts'
import { Refusal } from '../../model/errors.ts'
import type {
  Presence,
  PresencePage,
  PresentEndpoint,
  PresentNode,
  PresentSession,
  PresentTunnel,
} from '../../model/presence.ts'
import { endpoints } from '../resources/endpoints.ts'
import { nodes } from '../resources/nodes.ts'
import type { Resource } from '../resources/resource.ts'
import type { Links } from '../resources/resource-links.ts'
import { tunnelSessions } from '../resources/tunnel-sessions.ts'
import { tunnels } from '../resources/tunnels.ts'
import { PAGE_REFS, refsIn } from './page-bounds.ts'

/** The presence of a server with nobody online. */
export const nobodyPresent: Presence = {
  nodes: async () => [],
  node: async () => undefined,
  sessions: async () => [],
  session: async () => undefined,
  tunnels: async () => [],
  tunnel: async () => undefined,
  endpoints: async () => [],
  endpoint: async () => undefined,
  tunnelsWith: async () => [],
  command: async () => {
    throw new Refusal('NOT_FOUND', `there is no ${tunnelSessions.noun} with this id`)
  },
}

export type Shown = Record<string, unknown>

/** What showing needs. */
export interface Presenting {
  readonly links: Links
  /** Ids of the tunnel groups that a tunnel with these labels serves. */
  readonly groupsOf: (labels: Readonly<Record<string, string>>) => readonly string[]
}

/** How one kind is read and shown. */
interface ReadKind<Source> {
  page(source: Source, page: PresencePage, presenting: Presenting): Promise<Shown[]>
  one(source: Source, id: string, presenting: Presenting): Promise<Shown | undefined>
}

/** A kind that `read` reads from its source, and `show` shows. */
export function readKind<Source, Found>(
  show: (found: Found, presenting: Presenting) => Shown,
  read: {
    page(source: Source, page: PresencePage): Promise<readonly Found[]>
    one(source: Source, id: string): Promise<Found | undefined>
  },
): ReadKind<Source> {
  return {
    async page(source, page, presenting) {
      const breath = othersTurn()
      const shown: Shown[] = []
      let refs = 0
      for (const each of await read.page(source, page)) {
        const next = show(each, presenting)
        shown.push(next)
        refs += refsIn(next)
        // The last shows that there is more.
        if (refs > PAGE_REFS && shown.length > 1) break
        await breath()
      }
      return shown
    },
    async one(source, id, presenting) {
      const found = await read.one(source, id)
      return found && show(found, presenting)
    },
  }
}

const kinds = new Map<Resource, ReadKind<Presence>>([
  [nodes, readKind(showNode, { page: (all, page) => all.nodes(page), one: (all, id) => all.node(id) })],
  [
    tunnelSessions,
    readKind(showSession, { page: (all, page) => all.sessions(page), one: (all, id) => all.session(id) }),
  ],
  [tunnels, readKind(showTunnel, { page: (all, page) => all.tunnels(page), one: (all, id) => all.tunnel(id) })],
  [endpoints, readKind(showEndpoint, { page: (all, page) => all.endpoints(page), one: (all, id) => all.endpoint(id) })],
])

/** How a resource that is read from presence is read and shown. */
export function presentKind(resource: Resource): ReadKind<Presence> {
  const kind = kinds.get(resource)
  if (!kind) throw new Error(`${resource.kind} is not read from presence`)
  return kind
}

function showNode(node: PresentNode, { links }: Presenting): Shown {
  return shape(nodes.view, { ...node, uri: links.one(nodes, node.id, null) }) as Shown
}

function showSession(session: PresentSession, { links }: Presenting): Shown {
  const shown = {
    ...session,
    uri: links.one(tunnelSessions, session.id, null),
    agent_version: session.agentVersion,
    credential: links.to(session.credentialId),
    started_at: session.startedAt,
    transport: session.transport === 'ssh' ? 'ssh' : 'service/v2',
  }
  return shape(tunnelSessions.view, shown) as Shown
}

/** D19: what does not apply is absent. */
function showTunnel(tunnel: PresentTunnel, { links, groupsOf }: Presenting): Shown {
  const { endpoint, labels } = tunnel
  return {
    id: tunnel.id,
    started_at: tunnel.startedAt,
    metadata: tunnel.metadata,
    region: tunnel.region,
    tunnel_session: links.to(tunnel.sessionId),
    forwards_to: tunnel.forwardsTo,
    ...(endpoint && { public_url: endpoint.publicUrl, proto: endpoint.proto, endpoint: links.to(endpoint.id) }),
    ...(labels && { labels, backends: groupsOf(labels).map(links.to) }),
  }
}

/** What does not apply is absent, as in a tunnel. */
function showEndpoint(endpoint: PresentEndpoint, { links }: Presenting): Shown {
  const { domainId, tcpAddrId, tunnelId, edgeId } = endpoint
  return {
    id: endpoint.id,
    uri: links.one(endpoints, endpoint.id, null),
    region: endpoint.region,
    created_at: endpoint.createdAt,
    updated_at: endpoint.updatedAt,
    public_url: endpoint.publicUrl,
    proto: endpoint.proto,
    hostport: endpoint.hostport,
    type: endpoint.type,
    name: endpoint.name,
    description: endpoint.description,
    metadata: endpoint.metadata,
    bindings: ['public'],
    pooling_enabled: endpoint.isPooled ?? false,
    traffic_policy: '',
    upstream_protocol: endpoint.upstreamProtocol ?? '',
    upstream_url: endpoint.upstreamUrl ?? '',
    ...(domainId !== undefined && { domain: links.to(domainId) }),
    ...(tcpAddrId !== undefined && { tcp_addr: links.to(tcpAddrId) }),
    ...(tunnelId !== undefined && { tunnel: links.to(tunnelId) }),
    ...(edgeId !== undefined && { edge: links.to(edgeId) }),
  }
}
