/** Sessions and tunnels that are online, for tests of who knows of them. */
import type { EdgeConfig } from '../model/edge-config.ts'
import type { OnlineSession, OnlineTunnel, PlaceClaim } from '../planes/port.ts'

export function onlineSession(id: string, credentialId = 'cr_1', certificateId?: string): OnlineSession {
  const session = {
    id,
    agentVersion: '3.0.0',
    credentialId,
    ip: '192.0.2.1',
    metadata: '',
    os: 'linux',
    region: 'local',
    startedAt: '2026-01-01T00:00:00Z',
    transport: 'v2' as const,
  }
  return { session, certificateId }
}

/** What a tunnel serves at a name of its own. */
export function servedAt(tunnelId: string, name: string, httpVersion: 1 | 2 = 1): EdgeConfig {
  return {
    id: `ep_${tunnelId}`,
    kind: 'https',
    names: [name],
    ports: [],
    modules: {},
    routes: [{ id: 'route', matchType: 'path_prefix', match: '/', modules: { backend: { tunnelId, httpVersion } } }],
  }
}

export function placeClaim(tunnelId: string, sessionId: string, name: string): PlaceClaim {
  return { place: `secure:${name}`, tunnelId, sessionId, config: servedAt(tunnelId, name), isUnnamed: true }
}

const tunnelOf = (id: string, sessionId: string) => ({
  id,
  sessionId,
  startedAt: '2026-01-01T00:00:00Z',
  metadata: '',
  region: 'local',
  forwardsTo: 'http://localhost:80',
})

export function labelTunnel(id: string, sessionId: string, labels: Readonly<Record<string, string>>): OnlineTunnel {
  return { tunnel: { ...tunnelOf(id, sessionId), labels }, startedAt: 1, httpVersion: 1 }
}

export function endpointTunnel(id: string, sessionId: string, name: string): OnlineTunnel {
  const { place, config, isUnnamed } = placeClaim(id, sessionId, name)
  const publicUrl = `https://${name}`
  return {
    tunnel: { ...tunnelOf(id, sessionId), endpoint: { id: config.id, proto: 'https', publicUrl } },
    startedAt: 1,
    httpVersion: 1,
    endpoint: {
      place,
      config,
      isUnnamed,
      present: {
        id: config.id,
        region: 'local',
        createdAt: '2026-01-01T00:00:00Z',
        updatedAt: '2026-01-01T00:00:00Z',
        publicUrl,
        proto: 'https',
        hostport: `${name}:443`,
        type: 'ephemeral',
        name: '',
        description: '',
        metadata: '',
        tunnelId: id,
      },
    },
  }
}
