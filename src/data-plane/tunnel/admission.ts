/** Limits on unauthenticated connections: how many in all, how many from one source, how many failures. */
import type { Clock } from '../../lib/clock.ts'
import { clientKeyOf } from '../../lib/net/client-key.ts'
import type { ListenerLimits } from './tunnel-limits.ts'

const WINDOW_MS = 60_000

/** Most sources whose failures are counted; beyond that, the oldest are forgotten. */
const MAX_SOURCES = 10_000

/** Why a connection had to make room. */
export type Crowd = 'too many connections' | 'too many connections from this address'

/** An unauthenticated connection. */
export interface Candidate {
  readonly peer: { readonly ip: string }
  /** Closes it. */
  drop(): void
}

/**
 * No limit keeps out a valid token: an agent that shares an address with an attacker must not suffer. A token cannot be guessed,
 * so failures cost only time and log lines.
 */
export class Admission {
  readonly #limits: ListenerLimits
  readonly #now: Clock
  /** Oldest first, as are the sets by source. */
  readonly #all = new Set<Candidate>()
  readonly #bySource = new Map<string, Set<Candidate>>()
  /** Connections that had to make room, and failures, since the start. */
  turnedAway = 0
  failures = 0
  readonly #failures = new Map<string, { readonly startedAt: number; count: number }>()

  constructor(limits: ListenerLimits, now: Clock) {
    this.#limits = limits
    this.#now = now
  }

  /** Unauthenticated connections. */
  get unproven(): number {
    return this.#all.size
  }

  /** Admits a connection, which must `leave` later; gives the reason when another had to make room. */
  enter(candidate: Candidate): Crowd | undefined {
    const source = clientKeyOf(candidate.peer.ip)
    const crowd = this.#makeRoom(source)
    this.#all.add(candidate)
    const here = this.#bySource.get(source)
    if (here) here.add(candidate)
    else this.#bySource.set(source, new Set([candidate]))
    return crowd
  }

  /** Call this when it is authenticated or closed; a second call does nothing. */
  leave(candidate: Candidate): void {
    if (!this.#all.delete(candidate)) return
    const source = clientKeyOf(candidate.peer.ip)
    const here = this.#bySource.get(source)
    here?.delete(candidate)
    if (here?.size === 0) this.#bySource.delete(source)
  }

  dropAll(): void {
    for (const candidate of [...this.#all]) candidate.drop()
  }

  /** Counts a failure; true when the source fails so often that its answers are delayed and its failures are not logged. */
  fail(ip: string): boolean {
    this.failures++
    const source = clientKeyOf(ip)
    const window = this.#windowOf(source)
    if (window) {
      window.count++
      return window.count > this.#limits.failuresPerMinute
    }
    this.#failures.delete(source)
    this.#failures.set(source, { startedAt: this.#now(), count: 1 })
    const [oldest] = this.#failures.keys()
    if (this.#failures.size > MAX_SOURCES && oldest !== undefined) this.#failures.delete(oldest)
    return this.#limits.failuresPerMinute < 1
  }

  /**
   * At a limit the oldest connection is dropped for the newest. An agent authenticates within a few round trips, so the
   * connections that wait longest are those that never will.
   */
  #makeRoom(source: string): Crowd | undefined {
    const here = this.#bySource.get(source)
    if (here && here.size >= this.#limits.unprovenPerIp) {
      this.#dropOldest(here)
      return 'too many connections from this address'
    }
    if (this.#all.size < this.#limits.unproven) return undefined
    this.#dropOldest(this.#all)
    return 'too many connections'
  }

  #dropOldest(candidates: ReadonlySet<Candidate>): void {
    const [oldest] = candidates
    if (!oldest) return
    this.turnedAway++
    this.leave(oldest)
    oldest.drop()
  }

  #windowOf(source: string) {
    const window = this.#failures.get(source)
    const age = window ? this.#now() - window.startedAt : 0
    // If the clock was set back, a window that begins in the future counts as over, so that nobody is delayed.
    return age >= 0 && age < WINDOW_MS ? window : undefined
  }
}
