/** An authenticated connection of an agent, as a session, a leg and a standby each have one: its signs of life and its end. */
import { Heartbeat, LONGEST_SILENCE_MS, watchSilence } from '../../link/wire/heartbeat.ts'
import type { AuthRequest } from '../../link/wire/messages/auth.ts'
import type { Mux } from '../../link/wire/mux.ts'
import type { PeerTraits } from '../../link/wire/mux-peer.ts'
import type { Authenticated } from './authenticate-agent.ts'
import type { AgentPeer, ListenerContext } from './listener-context.ts'
import type { ListenerLimits } from './tunnel-limits.ts'

export interface LinkParts {
  readonly mux: Mux
  readonly traits: PeerTraits
  readonly peer: AgentPeer
  readonly request: AuthRequest
  readonly authenticated: Authenticated
  readonly listener: ListenerContext
}

export abstract class AgentLink {
  readonly credentialId: string
  readonly ip: string
  readonly parts: LinkParts
  #heartbeat: Heartbeat | undefined
  #stopWatching = (): void => {}
  #isEnded = false

  constructor(parts: LinkParts) {
    this.parts = parts
    this.credentialId = parts.authenticated.credentialId
    this.ip = parts.peer.ip
  }

  get isEnded(): boolean {
    return this.#isEnded
  }

  get bytesIn(): number {
    return this.parts.mux.bytesIn
  }

  get bytesOut(): number {
    return this.parts.mux.bytesOut
  }

  /** Ends the connection when its agent is silent or, if the agent is pinged, does not answer. */
  protected watch({ isPinged }: { readonly isPinged: boolean }): void {
    const { mux, request, listener } = this.parts
    const { silenceMs, intervalMs, toleranceMs } = signsOfLife(request, listener.limits)
    const onDead = (): void => this.end('its agent gave no sign of life')
    if (isPinged) this.#heartbeat = new Heartbeat(mux, { intervalMs, toleranceMs, onDead })
    this.#stopWatching = watchSilence(mux, { limitMs: silenceMs, onDead })
  }

  /** Whether a pinged agent gives a sign of life in time. */
  protected async isAlive(): Promise<boolean> {
    return (await this.#heartbeat?.ask(this.parts.listener.limits.signOfLifeMs)) !== false
  }

  end(reason: string): void {
    this.left(reason)
    this.parts.mux.close('no_error', reason)
  }

  /** Releases everything at once. Call this when the connection is closed, or has become something else. */
  left(reason: string): void {
    if (this.#isEnded) return
    this.#isEnded = true
    this.#stopWatching()
    this.#heartbeat?.stop()
    this.release(reason)
  }

  /** Called once. */
  protected abstract release(reason: string): void
}

type Announced = Pick<AuthRequest, 'heartbeatIntervalMs' | 'heartbeatToleranceMs'>

/** Pings per allowed silence: an agent gets more than one chance. */
const PINGS = 3

/**
 * How often an agent is pinged, and how long it may be silent before it counts as dead (D47).
 *
 * Any byte ends the silence, and our pings make quiet agents answer. A lost ping is noticed within the same time, even while
 * other bytes arrive. For that, the pause before a ping and the wait for its answer together take no longer than the allowed
 * silence.
 */
export function signsOfLife(announced: Announced, { leastHeartbeatMs }: Pick<ListenerLimits, 'leastHeartbeatMs'>) {
  const { heartbeatIntervalMs, heartbeatToleranceMs } = announced
  const silenceMs = clamp(heartbeatIntervalMs + heartbeatToleranceMs, leastHeartbeatMs, LONGEST_SILENCE_MS)
  const intervalMs = clamp(heartbeatIntervalMs, leastHeartbeatMs / PINGS, silenceMs / PINGS)
  return { silenceMs, intervalMs, toleranceMs: silenceMs - 2 * intervalMs }
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(Math.max(value, least), most)
}
