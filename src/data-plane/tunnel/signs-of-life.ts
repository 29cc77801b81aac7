/** How often an agent is pinged, and how long it may be silent before it counts as dead (D47). */
import { LONGEST_SILENCE_MS } from '../../link/wire/heartbeat.ts'
import type { AuthRequest } from '../../link/wire/messages/auth.ts'
import type { DoorLimits } from './tunnel-limits.ts'

type Announced = Pick<AuthRequest, 'heartbeatIntervalMs' | 'heartbeatToleranceMs'>

/** Pings per allowed silence: an agent gets more than one chance. */
const PINGS = 3

/**
 * Any byte ends the silence, and our pings make quiet agents answer. A lost ping is noticed within the same time, even while
 * other bytes arrive: the pause before a ping and the wait for its answer together take no longer than the allowed silence.
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
