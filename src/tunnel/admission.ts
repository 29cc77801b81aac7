/**
 * Who may stand at the door before it has proved who it is: how many in all, how many from one source, how often in vain.
 * None of it keeps a valid token out. A token cannot be guessed, so failures cost no more than time and log lines, and
 * whoever shares an address with an attacker must not pay for it: at a bound the oldest has to go and the newest comes in,
 * since an agent needs a few ways through the network, and those that wait longest are the ones that prove nothing.
 */
import type { Clock } from '../lib/clock.ts'
import { sourceOf } from '../lib/net/source.ts'
import type { DoorLimits } from './limits.ts'

const WINDOW_MS = 60_000

/** Sources whose failures are counted; over that, the oldest are forgotten. */
const MAX_SOURCES = 10_000

/** Why a connection had to make room. */
export type Crowd = 'too many connections' | 'too many connections from this address'

/** An unauthenticated connection. */
export interface Candidate {
  readonly peer: { readonly ip: string }
  /** Closes it. */
  drop(): void
}

export class Admission {
  readonly #limits: DoorLimits
  readonly #now: Clock
  /** Oldest first, as in the sets by source. */
  readonly #all = new Set<Candidate>()
  readonly #bySource = new Map<string, Set<Candidate>>()
  /** Connections that had to make room, and failures, since the start. */
  turnedAway = 0
  failures = 0
  readonly #failures = new Map<string, { readonly startedAt: number; count: number }>()

  constructor(limits: DoorLimits, now: Clock) {
    this.#limits = limits
    this.#now = now
  }

  /** Unauthenticated connections. */
  get unproven(): number {
    return this.#all.size
  }

  /** Admits a connection, which must `leave` later; gives the reason when another had to make room. */
  enter(candidate: Candidate): Crowd | undefined {
    const source = sourceOf(candidate.peer.ip)
    const crowd = this.#makeRoom(source)
    this.#all.add(candidate)
    const here = this.#bySource.get(source)
    if (here) here.add(candidate)
    else this.#bySource.set(source, new Set([candidate]))
    return crowd
  }

  /** It is authenticated, or closed. Calling it twice does no harm. */
  leave(candidate: Candidate): void {
    if (!this.#all.delete(candidate)) return
    const source = sourceOf(candidate.peer.ip)
    const here = this.#bySource.get(source)
    here?.delete(candidate)
    if (here?.size === 0) this.#bySource.delete(source)
  }

  /** Counts a failure; true when the source fails so often that answers are delayed and failures only counted. */
  fail(ip: string): boolean {
    this.failures++
    const source = sourceOf(ip)
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
    // If the clock was set back, a window in the future counts as over, so that nobody is held up.
    return age >= 0 && age < WINDOW_MS ? window : undefined
  }
}
