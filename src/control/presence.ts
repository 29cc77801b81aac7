/** Sessions, tunnels and endpoints as the API reads and shows them, and the presence of a server that no agent can reach yet. */
import { Refusal } from '../model/errors.ts'
import type { Presence, PresencePage, PresentEndpoint, PresentSession, PresentTunnel } from '../model/presence.ts'
import { endpoints } from '../resources/endpoints.ts'
import type { Resource } from '../resources/resource.ts'
import { tunnelSessions } from '../resources/tunnel-sessions.ts'
import { tunnels } from '../resources/tunnels.ts'
import type { Links } from './links.ts'

/** Nobody is online. */
export const nobodyPresent: Presence = {
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

/** A page of what `resource` stands for, as it is shown. */
export async function presentPage(
  presence: Presence,
  resource: Resource,
  page: PresencePage,
  links: Links,
): Promise<Shown[]> {
  switch (resource) {
    case tunnelSessions:
      return (await presence.sessions(page)).map((each) => showSession(each, links))
    case tunnels:
      return (await presence.tunnels(page)).map((each) => showTunnel(each, links))
    case endpoints:
      return (await presence.endpoints(page)).map((each) => showEndpoint(each, links))
    default:
      throw new Error(`${resource.kind} is not read from presence`)
  }
}

/** One of what `resource` stands for, as it is shown. */
export async function presentOne(
  presence: Presence,
  resource: Resource,
  id: string,
  links: Links,
): Promise<Shown | undefined> {
  switch (resource) {
    case tunnelSessions: {
      const session = await presence.session(id)
      return session && showSession(session, links)
    }
    case tunnels: {
      const tunnel = await presence.tunnel(id)
      return tunnel && showTunnel(tunnel, links)
    }
    case endpoints: {
      const endpoint = await presence.endpoint(id)
      return endpoint && showEndpoint(endpoint, links)
    }
    default:
      throw new Error(`${resource.kind} is not read from presence`)
  }
}

function showSession(session: PresentSession, links: Links): Shown {
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
function showTunnel(tunnel: PresentTunnel, links: Links): Shown {
  const { endpoint, labels } = tunnel
  return {
    id: tunnel.id,
    started_at: tunnel.startedAt,
    metadata: tunnel.metadata,
    region: tunnel.region,
    tunnel_session: links.to(tunnel.sessionId),
    forwards_to: tunnel.forwardsTo,
    ...(endpoint && { public_url: endpoint.publicUrl, proto: endpoint.proto, endpoint: links.to(endpoint.id) }),
    ...(labels && { labels, backends: tunnel.backendIds.map(links.to) }),
  }
}

/** What does not apply is absent, as in a tunnel. */
function showEndpoint(endpoint: PresentEndpoint, links: Links): Shown {
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
    metadata: endpoint.metadata,
    ...(domainId !== undefined && { domain: links.to(domainId) }),
    ...(tcpAddrId !== undefined && { tcp_addr: links.to(tcpAddrId) }),
    ...(tunnelId !== undefined && { tunnel: links.to(tunnelId) }),
    ...(edgeId !== undefined && { edge: links.to(edgeId) }),
  }
}
