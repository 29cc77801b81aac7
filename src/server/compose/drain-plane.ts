/** Drains a data plane: visitors first, then agents, which move to other data planes or nodes if there are any. */
import { setTimeout as pause } from 'node:timers/promises'
import { drainVisitors } from '../../data-plane/edge/drain-visitors.ts'
import type { DrainTogether } from '../../data-plane/node-limits/drain-together.ts'
import type { AgentListener } from '../../data-plane/tunnel/agent-listener.ts'
import { closeWhenIdle, LATE_MS } from '../../lib/bytes/close-when-idle.ts'
import type { listenForVisitors } from './open-listeners.ts'
import type { OpeningPlane, PlaneParts } from './opening-plane.ts'

/** The listener for agents, or the one for SSH clients. */
export type AgentEntrance = Pick<AgentListener, 'metrics' | 'stop' | 'closed'>

type Drained = Pick<PlaneParts, 'limits' | 'table' | 'tunnels' | 'remote' | 'visitors'>

interface DrainedListeners extends Pick<Awaited<ReturnType<typeof listenForVisitors>>, 'secure' | 'plain'> {
  readonly agentListeners: readonly AgentEntrance[]
  readonly together: DrainTogether
}

/** How long the control plane may take to confirm that this plane drains, in milliseconds. */
const LEAVING_MS = 2000

/** How long to wait before it is asked again, in milliseconds. */
const AGAIN_MS = 100

/** Resolves when no connections are left, since all have ended or the drain time is over. */
export async function drainPlane(plane: OpeningPlane, parts: Drained, given: DrainedListeners): Promise<void> {
  const { limits, table, tunnels, remote, visitors } = parts
  const { secure, plain, agentListeners, together } = given
  const { online } = tunnels
  const drainMs = plane.live.now.drainTimeoutMs
  const hasOthers = limits.peers.others().length > 0
  // Other planes may take as long to drain their visitors.
  const until = performance.now() + drainMs + LATE_MS
  together.begun()
  // A worker may not have heard yet of those that follow it.
  const mayMove = hasOthers || remote.agentAddresses().length > 0 || (plane.folder !== undefined && !online.isEmpty)
  const moved = mayMove ? moveAgents(plane, parts, given, until) : undefined
  await drainVisitors({ secure, plain, ...table, ...visitors }, drainMs)
  together.done()
  const isNodeLeft = await moved
  // Agents that cannot move stay until the end: visitors, including those at other data planes, are served through them.
  const { relayed } = remote
  await together.othersDone(until, () => relayed.streams + (isNodeLeft || together.isSurvived ? online.moving : 0))
  await closeWhenIdle(relayed.open)
  for (const listener of agentListeners) listener.stop()
  online.endAll('the server is stopping')
  await Promise.all(agentListeners.map((listener) => listener.closed()))
  if (hasOthers) await limits.counters.leave()
}

/**
 * Agents that reconnect must reach another plane, which must know that they own the addresses they ask for. Resolves with
 * whether the agents were sent to other nodes; a control plane that is late is asked until then, and no agent is cut meanwhile.
 */
async function moveAgents(
  { control }: OpeningPlane,
  { tunnels: { online }, remote }: Drained,
  { agentListeners, together }: DrainedListeners,
  until: number,
): Promise<boolean> {
  for (const listener of agentListeners) listener.stop()
  for (let isLate = false; ; isLate = true) {
    const leaving = await control.ask('leaving', null, { withinMs: LEAVING_MS }).catch(() => undefined)
    remote.leave()
    const others = remote.agentAddresses()
    // When no plane remains, the node is leaving, although its control plane cannot say so, or not tell the other nodes.
    if (others.length > 0 && (leaving?.isNode === true || (isLate && !together.isSurvived))) {
      await online.tellToMove(others)
      return true
    }
    if (leaving && together.isSurvived) {
      // A stopping node stays reachable until its agents are gone; a stopping plane need not, since other planes reach them.
      remote.relayed.stop()
      await online.tellToMove()
      return false
    }
    const isAnswered = leaving !== undefined && others.length === 0
    if (isAnswered || online.isEmpty || performance.now() >= until) return false
    await pause(AGAIN_MS)
  }
}
