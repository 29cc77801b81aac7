/** Reads and shows nodes, sessions, tunnels and endpoints for the API. */
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

type Shown = Record<string, unknown>

/** What showing presence needs. */
export interface Presenting {
  readonly links: Links
  /** Ids of the tunnel groups that a tunnel with these labels serves. */
  readonly groupsOf: (labels: Readonly<Record<string, string>>) => readonly string[]
}

/** A page of `resource`, as it is shown. */
export async function presentPage(
  presence: Presence,
  resource: Resource,
  page: PresencePage,
  presenting: Presenting,
): Promise<Shown[]> {
  switch (resource) {
    case nodes:
      return (await presence.nodes(page)).map((each) => showNode(each, presenting))
    case tunnelSessions:
      return (await presence.sessions(page)).map((each) => showSession(each, presenting))
    case tunnels:
      return (await presence.tunnels(page)).map((each) => showTunnel(each, presenting))
    case endpoints:
      return (await presence.endpoints(page)).map((each) => showEndpoint(each, presenting))
    default:
      throw new Error(`${resource.kind} is not read from presence`)
  }
}

/** One of `resource`, as it is shown. */
export async function presentOne(
  presence: Presence,
  resource: Resource,
  id: string,
  presenting: Presenting,
): Promise<Shown | undefined> {
  switch (resource) {
    case nodes: {
      const node = await presence.node(id)
      return node && showNode(node, presenting)
    }
    case tunnelSessions: {
      const session = await presence.session(id)
      return session && showSession(session, presenting)
    }
    case tunnels: {
      const tunnel = await presence.tunnel(id)
      return tunnel && showTunnel(tunnel, presenting)
    }
    case endpoints: {
      const endpoint = await presence.endpoint(id)
      return endpoint && showEndpoint(endpoint, presenting)
    }
    default:
      throw new Error(`${resource.kind} is not read from presence`)
  }
}

function showNode(node: PresentNode, { links }: Presenting): Shown {
  return {
    id: node.id,
    uri: links.one(nodes, node.id, null),
    name: node.name,
    address: node.address,
    region: node.region,
    version: node.version,
    sessions: node.sessions,
    since: node.since,
    lease: node.lease,
  }
}

function showSession(session: PresentSession, { links }: Presenting): Shown {
  return {
    id: session.id,
    uri: links.one(tunnelSessions, session.id, null),
    agent_version: session.agentVersion,
    credential: links.to(session.credentialId),
    ip: session.ip,
    metadata: session.metadata,
    os: session.os,
    region: session.region,
    started_at: session.startedAt,
    transport: session.transport === 'ssh' ? 'ssh' : 'service/v2',
  }
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
    ...(domainId !== undefined && { domain: links.to(domainId) }),
    ...(tcpAddrId !== undefined && { tcp_addr: links.to(tcpAddrId) }),
    ...(tunnelId !== undefined && { tunnel: links.to(tunnelId) }),
    ...(edgeId !== undefined && { edge: links.to(edgeId) }),
  }
}
