/** Drains a data plane: visitors first, then agents, which move to other data planes or nodes if there are any. */
import { drainVisitors } from '../../data-plane/edge/drain-visitors.ts'
import type { DrainTogether } from '../../data-plane/node-limits/drain-together.ts'
import type { AgentListener } from '../../data-plane/tunnel/agent-listener.ts'
import { closeWhenIdle, LATE_MS } from '../../lib/bytes/close-when-idle.ts'
import type { listenForVisitors } from './open-listeners.ts'
import type { OpeningPlane, PlaneParts } from './opening-plane.ts'

/** A door of agents, or of SSH clients. */
export type AgentDoor = Pick<AgentListener, 'numbers' | 'stop' | 'closed'>

type Drained = Pick<PlaneParts, 'limits' | 'table' | 'tunnels' | 'elsewhere' | 'visitors'>

interface DrainedDoors extends Pick<Awaited<ReturnType<typeof listenForVisitors>>, 'secure' | 'plain'> {
  readonly doors: readonly AgentDoor[]
  readonly together: DrainTogether
}

/** How long the control plane may take to confirm that this plane drains, in milliseconds. */
const LEAVING_MS = 2000

/** Resolves when no connections are left, since all have ended or the drain time is over. */
export async function drainPlane(plane: OpeningPlane, parts: Drained, given: DrainedDoors): Promise<void> {
  const { limits, table, tunnels, elsewhere, visitors } = parts
  const { secure, plain, doors, together } = given
  const { online } = tunnels
  const drainMs = plane.live.now.drainTimeoutMs
  const hasOthers = limits.neighbours.others().length > 0
  // Other planes may take as long to drain their visitors.
  const until = performance.now() + drainMs + LATE_MS
  together.begun()
  const moved = hasOthers || elsewhere.agentAddresses().length > 0 ? moveAgents(plane, parts, given) : undefined
  await drainVisitors({ secure, plain, ...table, ...visitors }, drainMs)
  together.done()
  const isNodeLeft = await moved
  // Agents that cannot move stay until the end: visitors, including those at other data planes, are served through them.
  const { relayed } = elsewhere
  await together.othersDone(until, () => relayed.streams + (isNodeLeft || together.isSurvived ? online.moving : 0))
  await closeWhenIdle(relayed.open)
  for (const door of doors) door.stop()
  online.endAll('the server is stopping')
  await Promise.all(doors.map((door) => door.closed()))
  if (hasOthers) await limits.counters.leave()
}

/**
 * Agents that reconnect must reach another plane, which must know that the addresses they ask for are theirs. Resolves with
 * whether they were sent to other nodes.
 */
async function moveAgents(
  { control }: OpeningPlane,
  { tunnels: { online }, elsewhere }: Drained,
  { doors, together }: DrainedDoors,
): Promise<boolean> {
  for (const door of doors) door.stop()
  const leaving = await control.ask('leaving', null, { withinMs: LEAVING_MS }).catch(() => undefined)
  elsewhere.leave()
  const others = elsewhere.agentAddresses()
  // Other nodes that do not know that this one leaves would at once end tunnels that have not moved yet.
  const isNodeLeft = leaving?.isNode === true && others.length > 0
  if (isNodeLeft) await online.tellToMove(others)
  else if (together.isSurvived) {
    // A stopping node stays reachable until its agents are gone; a stopping plane need not, since other planes reach them.
    elsewhere.relayed.stop()
    await online.tellToMove()
  }
  return isNodeLeft
}
