/** Drains a data plane: visitors first, then agents, which move to other data planes or nodes if there are any. */
import { type Draining, drainVisitors } from '../../data-plane/edge/drain-visitors.ts'
import type { DrainTogether } from '../../data-plane/node-limits/drain-together.ts'
import type { SharedCounters } from '../../data-plane/node-limits/shared-counters.ts'
import type { Online } from '../../data-plane/tunnel/online-tunnels.ts'
import { closeWhenIdle, LATE_MS, type Movable } from '../../lib/bytes/close-when-idle.ts'
import type { ControlLink } from '../../link/planes/control-link.ts'

/** A door of agents. */
interface Door {
  /** Accepts no more connections. */
  stop(): void
  /** Resolves when all connections are closed. */
  closed(): Promise<void>
}

export interface DrainPlane {
  readonly drainMs: number
  readonly visitors: Draining
  readonly doors: readonly Door[]
  readonly online: Online
  readonly control: ControlLink
  readonly together: DrainTogether
  readonly counters: SharedCounters
  /** Streams that it carries for visitors at other planes. */
  readonly relayed: {
    readonly streams: number
    readonly open: Iterable<Movable>
    /** Asks other nodes to use other planes of this node. */
    stop(): void
  }
  /** Whether there are other planes. */
  readonly hasOthers: boolean
  /** Where other nodes accept agents. */
  readonly nodes: () => readonly string[]
  /** Called when the plane begins to give up tunnels that move away. */
  readonly onLeaving: () => void
}

/** How long the control plane may take to confirm that this plane drains, in milliseconds. */
const LEAVING_MS = 2000

/** Resolves when no connections are left, since all have ended or the drain time is over. */
export async function drainPlane(plane: DrainPlane): Promise<void> {
  const { drainMs, visitors, doors, online, together, counters, relayed, hasOthers, nodes } = plane
  // Other planes may take as long to drain their visitors.
  const until = performance.now() + drainMs + LATE_MS
  together.begun()
  const moved = hasOthers || nodes().length > 0 ? moveAgents(plane) : undefined
  await drainVisitors(visitors, drainMs)
  together.done()
  const isNodeLeft = await moved
  // Agents that cannot move stay until the end: visitors, including those at other data planes, are served through them.
  await together.othersDone(until, () => relayed.streams + (isNodeLeft || together.isSurvived ? online.moving : 0))
  await closeWhenIdle(relayed.open)
  for (const door of doors) door.stop()
  online.endAll('the server is stopping')
  await Promise.all(doors.map((door) => door.closed()))
  if (hasOthers) await counters.leave()
}

/**
 * Agents that reconnect must reach another plane, which must know that the addresses they ask for are theirs. Resolves with
 * whether they were sent to other nodes.
 */
async function moveAgents({
  doors,
  control,
  onLeaving,
  together,
  online,
  relayed,
  nodes,
}: DrainPlane): Promise<boolean> {
  for (const door of doors) door.stop()
  const leaving = await control.ask('leaving', null, { withinMs: LEAVING_MS }).catch(() => undefined)
  onLeaving()
  const others = nodes()
  // Other nodes that do not know that this one leaves would at once end tunnels that have not moved yet.
  const isNodeLeft = leaving?.isNode === true && others.length > 0
  if (isNodeLeft) await online.tellToMove(others)
  else if (together.isSurvived) {
    // A stopping node stays reachable until its agents are gone; a stopping plane need not, since other planes reach them.
    relayed.stop()
    await online.tellToMove()
  }
  return isNodeLeft
}
