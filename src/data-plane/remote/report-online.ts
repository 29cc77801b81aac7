/** Tells the control plane of this data plane's sessions and tunnels, so that others can list and reach them. */

import type { ControlLink } from '../../link/planes/control-link.ts'
import type { Attachment, OnlineSession, OnlineTunnel } from '../../link/planes/plane-calls.ts'
import type { Elsewhere } from '../tunnel/interfaces.ts'
import type { Online } from '../tunnel/online-tunnels.ts'
import type { Registry } from '../tunnel/registry.ts'
import type { LiveSession, Tunnel } from '../tunnel/session-types.ts'
import type { ReachElsewhere } from './remote-tunnels.ts'

/** How long an agent waits until other planes can reach its tunnel, in milliseconds. */
const TOLD_MS = 5000

/** How long an agent that comes back waits until its former session has ended, in milliseconds. */
const RETURNING_MS = 3000

interface ToldElsewhere {
  readonly control: ControlLink
  readonly elsewhere: () => Pick<ReachElsewhere, 'others' | 'dial' | 'cameHere' | 'tunnelEnded' | 'leftHere'>
  readonly registry: () => Registry
}

export function toldElsewhere({ control, elsewhere, registry }: ToldElsewhere): Elsewhere {
  return {
    returning: (sessionId, { isMoving }) =>
      control.ask('returning', { sessionId, isMoving }, { withinMs: RETURNING_MS }),
    sessionStarted: (session) => control.tell('sessionStarted', onlineSession(session)),
    sessionEnded: ({ id }) => control.tell('sessionEnded', { sessionId: id }),
    async tunnelStarted(tunnel) {
      elsewhere().cameHere(tunnel.id, tunnel.endpoint?.open.served.config)
      // A control plane that is away is told when it attaches this data plane again.
      await control.ask('tunnelStarted', onlineTunnel(registry(), tunnel), { withinMs: TOLD_MS }).catch(() => {})
    },
    tunnelChanged: (tunnel) => control.tell('tunnelChanged', onlineTunnel(registry(), tunnel)),
    tunnelEnded({ id, endpoint, labels }) {
      elsewhere().tunnelEnded(id, labels)
      if (endpoint) elsewhere().leftHere(id, { place: endpoint.place, config: endpoint.open.served.config })
      control.tell('tunnelEnded', { tunnelId: id })
    },
    tunnelStopped: (tunnelId) => control.tell('tunnelStopped', { tunnelId }),
    holderOf: (tunnelId) => elsewhere().others.holderOf(tunnelId),
    proveAlive: (place) => control.ask('proveAlive', { place }).catch(() => false),
    dial: (request) => elsewhere().dial(request),
    mayHaveLeg: (session) => control.ask('mayHaveLeg', session, { withinMs: RETURNING_MS }),
    legChanged: (sessionId) => elsewhere().others.legChanged(sessionId),
  }
}

/** All that is online at a data plane. */
export function onlineAt({ registry, legs }: Online): Pick<Attachment, 'sessions' | 'tunnels' | 'legs'> {
  return {
    legs: legs.sessionIds,
    sessions: registry.liveSessions().map(onlineSession),
    tunnels: registry.liveTunnels().map((tunnel) => onlineTunnel(registry, tunnel)),
  }
}

function onlineSession({ present, certificateId }: LiveSession): OnlineSession {
  return { session: present, certificateId }
}

function onlineTunnel(registry: Registry, tunnel: Tunnel): OnlineTunnel {
  const { startedAt, httpVersion, endpoint } = tunnel
  const present = registry.presentEndpoint(tunnel)
  return {
    tunnel: registry.presentTunnel(tunnel),
    startedAt,
    httpVersion,
    ...(endpoint && present && { endpoint: { present, place: endpoint.place, ...endpoint.open.served } }),
  }
}
