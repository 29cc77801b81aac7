/** Who may stand at the door before it has proved who it is: how many in all, how many from one place, how often in vain. */
import type { Clock } from '../lib/clock.ts'
import { plainAddress } from '../lib/ip-rules.ts'
import type { DoorLimits } from './limits.ts'

const WINDOW_MS = 60_000

/** Places whose failures are counted at once; beyond it the oldest are forgotten first. */
const MAX_PLACES = 10_000

/** Why somebody is not let in. */
export type Bar = 'too many connections' | 'too many connections from this address' | 'too many failed authentications'

export class Admission {
  readonly #limits: DoorLimits
  readonly #now: Clock
  readonly #unproven = new Map<string, number>()
  readonly #failures = new Map<string, { readonly startedAt: number; count: number }>()
  #total = 0

  constructor(limits: DoorLimits, now: Clock) {
    this.#limits = limits
    this.#now = now
  }

  /** Connections that have not proved yet who they are. */
  get unproven(): number {
    return this.#total
  }

  /** Lets one in, who must `leave` later; or says why not. */
  enter(ip: string): Bar | undefined {
    const place = placeOf(ip)
    if (this.#isBarred(place)) return 'too many failed authentications'
    const here = this.#unproven.get(place) ?? 0
    if (here >= this.#limits.unprovenPerIp) return 'too many connections from this address'
    if (this.#total >= this.#limits.unproven) return 'too many connections'
    this.#unproven.set(place, here + 1)
    this.#total++
    return undefined
  }

  /** It has proved who it is, or is gone. */
  leave(ip: string): void {
    const place = placeOf(ip)
    const here = this.#unproven.get(place) ?? 0
    if (here > 1) this.#unproven.set(place, here - 1)
    else this.#unproven.delete(place)
    this.#total--
  }

  fail(ip: string): void {
    const place = placeOf(ip)
    const window = this.#windowOf(place)
    if (window) {
      window.count++
      return
    }
    this.#failures.delete(place)
    this.#failures.set(place, { startedAt: this.#now(), count: 1 })
    const [oldest] = this.#failures.keys()
    if (this.#failures.size > MAX_PLACES && oldest !== undefined) this.#failures.delete(oldest)
  }

  #isBarred(place: string): boolean {
    return (this.#windowOf(place)?.count ?? 0) >= this.#limits.failuresPerMinute
  }

  #windowOf(place: string) {
    const window = this.#failures.get(place)
    const age = window ? this.#now() - window.startedAt : 0
    // A clock that was set back must bar nobody for long, so a window from the future is over too.
    return age >= 0 && age < WINDOW_MS ? window : undefined
  }
}

/** An IPv4 address, or the /64 network of an IPv6 one: whoever has one address there has them all. */
function placeOf(ip: string): string {
  const address = plainAddress(ip)
  if (!address.includes(':')) return address
  const [head = '', tail] = address.split('::')
  const first = head === '' ? [] : head.split(':')
  const last = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - first.length - last.length)
  return [...first, ...Array.from({ length: zeros }, () => '0'), ...last].slice(0, 4).join(':')
}
