/** How often an agent is pinged, and how long it may be silent before it is taken for dead (D47). */
import { LONGEST_SILENCE_MS } from '../wire/heartbeat.ts'
import type { AuthRequest } from '../wire/messages/auth.ts'
import type { DoorLimits } from './limits.ts'

type Announced = Pick<AuthRequest, 'heartbeatIntervalMs' | 'heartbeatToleranceMs'>

/** Pings for each time that an agent may be silent: it has more than one chance. */
const PINGS = 3

/**
 * Silence is counted from any byte, and our own pings make an agent speak that says little by itself. A ping that is
 * lost on its way there is found in the same time, though the agent is still heard: the wait for a ping to be sent and
 * the wait for its answer are together no longer than the silence.
 */
export function signsOfLife(announced: Announced, { leastHeartbeatMs }: Pick<DoorLimits, 'leastHeartbeatMs'>) {
  const { heartbeatIntervalMs, heartbeatToleranceMs } = announced
  const silenceMs = clamp(heartbeatIntervalMs + heartbeatToleranceMs, leastHeartbeatMs, LONGEST_SILENCE_MS)
  const intervalMs = clamp(heartbeatIntervalMs, leastHeartbeatMs / PINGS, silenceMs / PINGS)
  return { silenceMs, intervalMs, toleranceMs: silenceMs - 2 * intervalMs }
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(Math.max(value, least), most)
}
