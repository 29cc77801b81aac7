/** Online sessions and tunnels for tests. */

import type { OnlineSession, OnlineTunnel, Reservation } from '../../../link/planes/plane-calls.ts'
import type { EdgeConfig } from '../../../model/edge-config.ts'

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

/** The configuration of a tunnel at a name of its own. */
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

export function testReservation(tunnelId: string, sessionId: string, name: string): Reservation {
  return {
    place: `secure:${name}`,
    tunnelId,
    sessionId,
    config: servedAt(tunnelId, name),
    version: '1',
    isUnnamed: true,
  }
}

/** A claim of a tunnel in a pool. */
export function poolReservation(
  tunnelId: string,
  sessionId: string,
  name: string,
  { ownerId = 'usr_1', version = 'a.b.c' } = {},
): Reservation {
  const backend = { kind: 'tunnel_group', id: 'ep_pool', labels: { '': 'ep_pool' }, pool: { proxyHeader: 0 } }
  const route = { id: 'route', matchType: 'path_prefix', match: '/', modules: { backend } } as const
  const config = { ...servedAt(tunnelId, name), id: 'ep_pool', routes: [route] }
  return { ...testReservation(tunnelId, sessionId, name), config, version, pool: { ownerId, httpVersion: 1 } }
}

/** The tunnel of such a claim, online. */
export function poolTunnel(...given: Parameters<typeof poolReservation>): OnlineTunnel {
  const [id, sessionId, name] = given
  const { endpoint, ...online } = endpointTunnel(id, sessionId, name)
  const { place, config, version, isUnnamed, pool } = poolReservation(...given)
  return { ...online, ...(endpoint && { endpoint: { ...endpoint, place, config, version, isUnnamed, pool } }) }
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
  const { place, config, version, isUnnamed } = testReservation(id, sessionId, name)
  const publicUrl = `https://${name}`
  return {
    tunnel: { ...tunnelOf(id, sessionId), endpoint: { id: config.id, proto: 'https', publicUrl } },
    startedAt: 1,
    httpVersion: 1,
    endpoint: {
      place,
      config,
      version,
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
