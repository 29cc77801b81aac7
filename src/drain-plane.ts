/** How a data plane ends: visitors first, then the agents, which move to other data planes if there are any. */
import { type Draining, drainVisitors } from './edge/drain-visitors.ts'
import type { DrainTogether } from './neighbours/drain-together.ts'
import type { SharedCounters } from './neighbours/shared-counters.ts'
import type { ControlLink } from './planes/control-link.ts'
import type { Online } from './tunnel/online.ts'

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
  /** How many connections it carries for visitors at other planes. */
  readonly relayed: () => number
  /** Whether there are other planes. */
  readonly hasOthers: boolean
  /** From now on, what moves away is given up. */
  readonly onLeaving: () => void
}

/** How long the control plane may take to hear that this plane drains, in milliseconds. */
const LEAVING_MS = 2000

/** Resolves when nobody is connected any more: everybody is done, or the drain time is over. */
export async function drainPlane(plane: DrainPlane): Promise<void> {
  const { drainMs, visitors, doors, online, together, counters, relayed, hasOthers } = plane
  const until = performance.now() + drainMs
  together.begun()
  const moved = hasOthers ? moveAgents(plane) : undefined
  await drainVisitors(visitors, drainMs)
  together.done()
  await moved
  // Agents that know nothing of moving last, since visitors are served through them, those at other data planes too.
  await together.othersDone(until, () => relayed() + (together.isSurvived ? online.moving : 0))
  for (const door of doors) door.stop()
  online.endAll('the server is stopping')
  await Promise.all(doors.map((door) => door.closed()))
  if (hasOthers) await counters.leave()
}

/** Agents that connect anew must get to another plane, which must know that what they ask for is theirs. */
async function moveAgents({ doors, control, onLeaving, together, online }: DrainPlane): Promise<void> {
  for (const door of doors) door.stop()
  await control.ask('leaving', null, { withinMs: LEAVING_MS }).catch(() => {})
  onLeaving()
  if (together.isSurvived) await online.tellToMove()
}
