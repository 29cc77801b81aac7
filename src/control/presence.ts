/** Sessions and tunnels as the API shows them, and the presence of a server that no agent can reach yet. */
import { Refusal } from '../model/errors.ts'
import type { Presence, PresentSession, PresentTunnel } from '../model/presence.ts'
import { tunnelSessions } from '../resources/tunnel-sessions.ts'
import type { Links } from './links.ts'

/** Nobody is online. */
export const nobodyPresent: Presence = {
  sessions: async () => [],
  session: async () => undefined,
  tunnels: async () => [],
  tunnel: async () => undefined,
  tunnelsWith: async () => [],
  command: async () => {
    throw new Refusal('NOT_FOUND', `there is no ${tunnelSessions.noun} with this id`)
  },
}

export function showSession(session: PresentSession, links: Links): Record<string, unknown> {
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
export function showTunnel(tunnel: PresentTunnel, links: Links): Record<string, unknown> {
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
