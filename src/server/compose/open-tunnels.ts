/** Opens the tunnels of a data plane: those of agents that are online here, and those at other workers and nodes. */
import { randomBytes } from 'node:crypto'
import { AgentEndpoints } from '../../data-plane/edge/agent-endpoints.ts'
import { ConfiguredEdges } from '../../data-plane/edge/configured-edges.ts'
import { EndpointHolders } from '../../data-plane/edge/endpoint-holders.ts'
import { shareWatched } from '../../data-plane/node-limits/share-watched.ts'
import { openRemoteTunnels } from '../../data-plane/remote/remote-tunnels.ts'
import { Online } from '../../data-plane/tunnel/online-tunnels.ts'
import { streamChannel } from '../../link/calls/plane-channel.ts'
import type { PlaneCalls } from '../../link/planes/plane-calls.ts'
import type { OpeningPlane, PlaneParts } from './opening-plane.ts'

/** Sessions of agents and their tunnels, with the endpoints that these have in the table of edges. */
export function openTunnels(
  plane: OpeningPlane,
  { table, registry, limits }: Pick<PlaneParts, 'table' | 'registry' | 'limits'>,
) {
  const { settings, listeners, control, seal, publicPorts, ids, now, log, opened } = plane
  const { edges } = table
  const shared = new EndpointHolders(edges)
  const endpoints = new AgentEndpoints({
    ...{ edges, shared, control, publicPorts, log },
    isRemote: (id) => registry.remote.isRemote(id),
  })
  const online = new Online({
    ...{ endpoints, control, registry, seal, ids, now, log },
    random: randomBytes,
    domain: settings.domain,
    tcpPorts: settings.tcpPorts,
    publicPorts: () => publicPorts,
    isClustered: listeners.cluster !== undefined,
  })
  opened.defer(shareWatched(limits.peers, online.requests))
  const stored = new ConfiguredEdges({
    edges,
    agents: endpoints,
    stopTunnel: (id, why) => online.stopTunnel(id, why),
  })
  return {
    ...{ shared, endpoints, online },
    calls: {
      storedEdges: () => edges.storedIds,
      edges: async ({ removed, applied, isIdle }) => {
        // Removed edges go first, so that their names are free for the others.
        for (const id of removed) stored.remove(id)
        for (const config of applied) await stored.apply(config, { isIdle })
        return edges.comingOf(applied.map(({ id }) => id))
      },
      edgesSettled: (ids) => edges.settled(ids),
      brokenEdges: () => edges.broken,
      command: async ({ sessionId, command }) => registry.command(sessionId, command),
      endSession: ({ sessionId, reason }) => registry.liveSession(sessionId)?.end(reason),
      endSessionsOf: (credential) => online.endSessionsOf(credential),
      endLegs: ({ sessionId }) => online.legs.end(sessionId, 'its session is over'),
      proveAlive: async ({ sessionId }) => registry.liveSession(sessionId)?.proveAlive(),
      stopTunnel: ({ tunnelId, why }) => void online.stopTunnel(tunnelId, why),
      tunnelStopped: ({ tunnelId }) => online.noteStopped(tunnelId),
    } satisfies Partial<PlaneCalls>,
  }
}

/** Tunnels that are online at other workers and nodes, one hop away. */
export function openRemote(
  plane: OpeningPlane,
  { table, tunnels, limits }: Pick<PlaneParts, 'table' | 'tunnels' | 'limits'>,
) {
  const { nodeId, planeId, folder, listeners, control, authority, log, opened } = plane
  const { edges } = table
  const { shared, endpoints, online } = tunnels
  const { links, peers } = limits
  const remote = openRemoteTunnels({
    ...{ nodeId, planeId, folder, control, authority, edges, shared, online, links, log },
    callsToControl: plane.callsToControl,
    clusterListen: listeners.cluster,
    answer: (stream) => peers.accept(streamChannel(stream)),
    isOpening: (endpointId) => endpoints.isOpening(endpointId),
  })
  opened.defer(() => remote.close())
  online.registry.attach(remote)
  peers.whenMoved((_, left) => {
    for (const id of left) {
      links.forget(id)
      remote.others.isGone(id)
    }
  })
  return remote
}
