/**
 * Circuit breakers of a whole node: each plane sends the others its counts, those with failures in the same turn, and at once when
 * a circuit opens or closes.
 */
import type { BreakerTwins, TwinBreaker, TwinLink } from '../../modules/circuit_breaker/traffic.ts'
import { GatheredChanges } from './gather-changes.ts'
import { KeyOwners } from './key-owners.ts'
import type { WorkerPeers } from './worker-peers.ts'

/** How long the owner of a key may take to grant a trial request, in milliseconds; then this plane decides. */
const GRANT_MS = 250

/** Breakers with pending counts that make this plane send them at once. */
const MAX_GATHERED = 1000

/** Most open circuits that are kept without a breaker here: edges are compiled only when their first visitor comes. */
const MAX_AHEAD = 10_000

interface SharedBreakersOptions {
  /** A clock that never goes back, in milliseconds. */
  readonly now?: () => number
  readonly grantMs?: number
}

export class SharedBreakers implements BreakerTwins {
  readonly #peers: WorkerPeers
  readonly #owners: KeyOwners
  readonly #now: () => number
  readonly #grantMs: number
  readonly #breakers = new Map<string, TwinBreaker>()
  readonly #unsent = new Map<string, { total: number; failed: number }>()
  readonly #gathering = new GatheredChanges(() => this.#tell())
  /** Until when circuits without a breaker here are open. */
  readonly #ahead = new Map<string, number>()
  /** For keys that this plane owns, the plane that makes the trial request. */
  readonly #probing = new Map<string, string>()
  #isAlone = true

  constructor(peers: WorkerPeers, { now = () => performance.now(), grantMs = GRANT_MS }: SharedBreakersOptions = {}) {
    this.#peers = peers
    this.#owners = new KeyOwners(peers)
    this.#now = now
    this.#grantMs = grantMs
    peers.serve('breakers.counted', (counted) => {
      for (const [key, total, failed] of counted) this.#breakers.get(key)?.counted(total, failed)
    })
    peers.serve('breakers.opened', (opened) => {
      for (const [key, waitMs] of opened) this.#heardOpened(key, waitMs)
    })
    peers.serve('breakers.closed', (key) => {
      this.#decided(key)
      this.#breakers.get(key)?.closed()
    })
    peers.serve('breakers.grant', (key, from) => this.#grant(key, from))
    peers.serve('breakers.over', (key, from) => this.#over(key, from))
    peers.whenMoved((came, left) => {
      this.#isAlone = peers.others().length === 0
      this.#owners.use(peers.others())
      for (const [key, plane] of this.#probing) if (left.includes(plane)) this.#probing.delete(key)
      this.#tellOpen(came)
    })
  }

  join(key: string, breaker: TwinBreaker): TwinLink {
    this.#breakers.set(key, breaker)
    const until = this.#ahead.get(key)
    if (until !== undefined) {
      this.#ahead.delete(key)
      breaker.opened(Math.max(0, until - this.#now()))
    }
    return {
      counted: (hasFailed) => {
        if (!this.#isAlone) this.#count(key, hasFailed)
      },
      opened: (waitMs) => {
        this.#decided(key)
        if (!this.#isAlone) this.#peers.tellAll('breakers.opened', [[key, waitMs]])
      },
      closed: () => {
        this.#decided(key)
        if (!this.#isAlone) this.#peers.tellAll('breakers.closed', key)
      },
      mayProbe: () => this.#isAlone || this.#mayProbe(key),
      probeOver: () => this.#probeOver(key),
      leave: () => {
        // The next version of the breaker may have joined already.
        if (this.#breakers.get(key) === breaker) this.#breakers.delete(key)
      },
    }
  }

  close(): void {
    this.#gathering.close()
  }

  #count(key: string, hasFailed: boolean): void {
    const unsent = this.#unsent.get(key)
    if (unsent) {
      unsent.total++
      if (hasFailed) unsent.failed++
    } else this.#unsent.set(key, { total: 1, failed: hasFailed ? 1 : 0 })
    // D61: each plane may let through one request more than a single one would.
    if (hasFailed) this.#gathering.thisTurn()
    else if (this.#unsent.size < MAX_GATHERED) this.#gathering.soon()
    else this.#gathering.now()
  }

  #tell(): void {
    if (this.#unsent.size === 0) return
    const counted = [...this.#unsent].map(([key, { total, failed }]) => [key, total, failed] as const)
    this.#unsent.clear()
    this.#peers.tellAll('breakers.counted', counted)
  }

  /** A circuit has opened or closed: earlier counts are void, and the trial request is over. */
  #decided(key: string): void {
    this.#unsent.delete(key)
    this.#probing.delete(key)
    this.#ahead.delete(key)
  }

  #heardOpened(key: string, waitMs: number): void {
    this.#decided(key)
    const breaker = this.#breakers.get(key)
    if (breaker) {
      breaker.opened(waitMs)
      return
    }
    this.#ahead.set(key, this.#now() + waitMs)
    const [first] = this.#ahead.keys()
    if (this.#ahead.size > MAX_AHEAD && first !== undefined) this.#ahead.delete(first)
  }

  /** Tells planes that have just come which circuits are open. */
  #tellOpen(planes: readonly string[]): void {
    if (planes.length === 0) return
    const open: (readonly [string, number])[] = []
    for (const [key, breaker] of this.#breakers) {
      const waitMs = breaker.waitMs()
      if (waitMs !== undefined) open.push([key, Math.max(0, waitMs)])
    }
    if (open.length > 0) for (const plane of planes) this.#peers.tell(plane, 'breakers.opened', open)
  }

  /** While a circuit is half open, the plane that owns its key grants one trial request in all. */
  #mayProbe(key: string): boolean | Promise<boolean> {
    const owner = this.#owners.ownerAmongPeers(key)
    if (owner === undefined) return this.#grant(key, this.#peers.self)
    const late = (isGranted: boolean): void => {
      if (isGranted) this.#peers.tell(owner, 'breakers.over', key)
    }
    // Without an answer this plane makes the trial: its breaker lets one through at a time, and a circuit must not stay open.
    return this.#peers.ask(owner, 'breakers.grant', key, { withinMs: this.#grantMs, late }).catch(() => true)
  }

  /** The plane that holds the grant may ask again: its breaker lets one request through at a time. */
  #grant(key: string, plane: string): boolean {
    const holder = this.#probing.get(key)
    if (holder !== undefined && holder !== plane) return false
    this.#probing.set(key, plane)
    return true
  }

  #over(key: string, plane: string): void {
    if (this.#probing.get(key) === plane) this.#probing.delete(key)
  }

  #probeOver(key: string): void {
    this.#over(key, this.#peers.self)
    const owner = this.#owners.ownerAmongPeers(key)
    if (owner !== undefined) this.#peers.tell(owner, 'breakers.over', key)
  }
}
