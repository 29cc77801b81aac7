/** Rate limits over sliding windows: the port that modules use, and its implementation in one process's bounded memory. */
import { Shares } from './shares.ts'

/**
 * Counts events across connections, such as the requests of one visitor. A key begins with its owner, such as an edge, and a
 * space: owners share the memory.
 */
export interface Counters {
  /** Counts one event of `key` if the rate allows it; returns no promise when the counter is in this process. */
  take(key: string, rate: Rate): Taken | Promise<Taken>
}

export interface Rate {
  /** How many are allowed within a window. */
  readonly capacity: number
  readonly windowMs: number
}

export interface Taken {
  readonly isAllowed: boolean
  /** How long until another is allowed, in milliseconds; 0 when one is. */
  readonly waitMs: number
}

/**
 * How many lists of counters each new key looks at, and how many expired ones it may remove of each: more than one, so that
 * their number shrinks, and the end of the lists is reached although it moves on.
 */
const LISTS_SWEPT = 4
const SWEPT = 2
/** One counter for all keys of an owner that come when it has its share, so that sending ever new keys gains nothing. */
const OTHERS = '\0others'

/** The count of a key, for a copy of the counters that counts independently. */
export interface CountedWindow {
  readonly key: string
  readonly windowMs: number
  /** How long ago the window of `current` began. */
  readonly ageMs: number
  readonly current: number
  readonly previous: number
}

/** How many keys a copy contains at most. */
const MAX_COPIED = 10_000

interface Window {
  /** When the window of `current` began. */
  startedAt: number
  current: number
  previous: number
}

/** By window length, then by key, in the order in which their windows began. */
type OwnerWindows = Map<number, Map<string, Window>>

interface WindowList {
  readonly owner: string
  readonly windowMs: number
  readonly windows: ReadonlyMap<string, Window>
}

export class SlidingCounters implements Counters {
  readonly #owners = new Map<string, OwnerWindows>()
  #lists = this.#everyList()
  readonly #now: () => number
  readonly #shares: Shares

  /**
   * `now` is in milliseconds, of a clock that never goes back. At most `maxKeys` counters are kept, of all owners and window
   * lengths together; one takes about 500 bytes.
   */
  constructor({ now = () => performance.now(), maxKeys = 100_000 } = {}) {
    this.#now = now
    this.#shares = new Shares(maxKeys)
  }

  /** The number of counters. */
  get size(): number {
    return this.#shares.used
  }

  take(key: string, { capacity, windowMs }: Rate): Taken {
    const now = this.#now()
    const window = this.#window(key, windowMs, now)
    if (!window) return { isAllowed: false, waitMs: windowMs }
    // The part of the previous window that still overlaps counts too, as if its events had been spread evenly.
    const share = 1 - (now - window.startedAt) / windowMs
    const used = window.previous * share + window.current
    if (used + 1 > capacity) return { isAllowed: false, waitMs: waitMs(window, { capacity, windowMs }, now) }
    window.current++
    return { isAllowed: true, waitMs: 0 }
  }

  /** Takes back one counted event. In a later window it does nothing, since the event counts for less there. */
  giveBack(key: string, windowMs: number): void {
    const window = this.#known(key, windowMs)
    if (window && window.current > 0 && this.#now() - window.startedAt < windowMs) window.current--
  }

  /** Counters that start from a copy made by `counted`. */
  static from(windows: readonly CountedWindow[]): SlidingCounters {
    const counters = new SlidingCounters()
    counters.add(windows)
    return counters
  }

  /** Whether events of this key still count. */
  has(key: string, windowMs: number): boolean {
    const window = this.#known(key, windowMs)
    return window !== undefined && this.#now() - window.startedAt < 2 * windowMs
  }

  /** Adds events that were counted elsewhere. */
  add(windows: readonly CountedWindow[]): void {
    const now = this.#now()
    for (const { key, windowMs, ageMs, current, previous } of windows) {
      const added: Window = { startedAt: now - ageMs, current, previous }
      const known = this.#known(key, windowMs)
      const isCounting = known && now - known.startedAt < 2 * windowMs
      if (!isCounting && ageMs >= 2 * windowMs) continue
      const window = this.#window(key, windowMs, now)
      if (!window) continue
      // Keys beyond the share of their owner only add their count to the one for all of them.
      if (!isCounting && this.#known(key, windowMs) === window) Object.assign(window, added)
      else joinWindows(window, added, now, windowMs)
    }
  }

  /** Removes a key and returns its count. */
  remove(key: string, windowMs: number): CountedWindow | undefined {
    const window = this.#known(key, windowMs)
    if (!window) return undefined
    this.#delete(ownerOf(key), windowMs, key)
    const { startedAt, current, previous } = window
    const ageMs = this.#now() - startedAt
    return ageMs < 2 * windowMs ? { key, windowMs, ageMs, current, previous } : undefined
  }

  /** Removes all that an owner has. */
  forget(owner: string): void {
    this.#owners.delete(owner)
    this.#shares.add(owner, -this.#shares.heldBy(owner))
  }

  /** All keys with their window lengths. Counting may continue during the iteration. */
  *keys(): Generator<readonly [key: string, windowMs: number], void> {
    for (const owned of this.#owners.values()) {
      for (const [windowMs, windows] of owned) {
        for (const key of windows.keys()) if (key !== OTHERS) yield [key, windowMs]
      }
    }
  }

  /** A copy of the counts of an owner; incomplete when there are very many keys. */
  counted(owner: string): CountedWindow[] {
    const now = this.#now()
    const found: CountedWindow[] = []
    for (const [windowMs, windows] of this.#owners.get(owner) ?? []) {
      for (const [key, { startedAt, current, previous }] of windows) {
        if (found.length === MAX_COPIED) return found
        if (key !== OTHERS) found.push({ key, windowMs, ageMs: now - startedAt, current, previous })
      }
    }
    return found
  }

  #known(key: string, windowMs: number): Window | undefined {
    return this.#owners.get(ownerOf(key))?.get(windowMs)?.get(key)
  }

  /** The window in which a key is counted; undefined when there is no room for one. */
  #window(key: string, windowMs: number, now: number): Window | undefined {
    const owner = ownerOf(key)
    const windows = this.#owners.get(owner)?.get(windowMs)
    const known = windows?.get(key)
    if (known && now - known.startedAt < windowMs) return known
    if (windows && known) return renew(windows, key, known, now, windowMs)
    this.#sweep(now)
    if (this.#makeRoom(owner)) return this.#insert(owner, windowMs, key, now)
    const others = windows?.get(OTHERS)
    if (windows && others) {
      return now - others.startedAt < windowMs ? others : renew(windows, OTHERS, others, now, windowMs)
    }
    // It takes the place of a counter of the same owner, but of none for all keys, which would then count anew.
    return this.#removeOldest(owner, { isOwn: true }) ? this.#insert(owner, windowMs, OTHERS, now) : undefined
  }

  /** False when the owner has its share. */
  #makeRoom(owner: string): boolean {
    for (let giver = this.#shares.giver(owner); giver !== undefined; giver = this.#shares.giver(owner)) {
      if (giver === owner || !this.#removeOldest(giver)) return false
    }
    return true
  }

  #insert(owner: string, windowMs: number, key: string, now: number): Window {
    const owned: OwnerWindows = this.#owners.get(owner) ?? new Map()
    const windows = owned.get(windowMs) ?? new Map<string, Window>()
    const window: Window = { startedAt: now, current: 0, previous: 0 }
    this.#owners.set(owner, owned)
    owned.set(windowMs, windows)
    windows.set(key, window)
    this.#shares.add(owner, 1)
    return window
  }

  /** Removes a counter of the owner, one for a single key if there is any; false when there is none to remove. */
  #removeOldest(owner: string, { isOwn = false } = {}): boolean {
    let last: readonly [number, string] | undefined
    for (const [windowMs, windows] of this.#owners.get(owner) ?? []) {
      for (const key of windows.keys()) {
        if (key !== OTHERS || !isOwn) last = [windowMs, key]
        if (key !== OTHERS) break
      }
      if (last && last[1] !== OTHERS) break
    }
    if (last) this.#delete(owner, ...last)
    return last !== undefined
  }

  #delete(owner: string, windowMs: number, key: string): void {
    const owned = this.#owners.get(owner)
    const windows = owned?.get(windowMs)
    if (!owned || !windows?.delete(key)) return
    if (windows.size === 0) owned.delete(windowMs)
    if (owned.size === 0) this.#owners.delete(owner)
    this.#shares.add(owner, -1)
  }

  /** Drops some expired counters, of one owner and window length after the other. */
  #sweep(now: number): void {
    for (let list = 0; list < LISTS_SWEPT; list++) {
      const next = this.#lists.next()
      if (next.done) this.#lists = this.#everyList()
      else this.#sweepList(next.value, now)
    }
  }

  #sweepList({ owner, windowMs, windows }: WindowList, now: number): void {
    let swept = 0
    for (const [key, { startedAt }] of windows) {
      if (swept++ === SWEPT || now - startedAt < 2 * windowMs) return
      this.#delete(owner, windowMs, key)
    }
  }

  *#everyList(): Generator<WindowList, void> {
    for (const [owner, owned] of this.#owners) {
      for (const [windowMs, windows] of owned) yield { owner, windowMs, windows }
    }
  }
}

function ownerOf(key: string): string {
  const end = key.indexOf(' ')
  return end < 0 ? key : key.slice(0, end)
}

/** Starts the next window of a key, and moves the key to the end. */
function renew(windows: Map<string, Window>, key: string, window: Window, now: number, windowMs: number): Window {
  const isNext = now - window.startedAt < 2 * windowMs
  window.previous = isNext ? window.current : 0
  window.startedAt = isNext ? window.startedAt + windowMs : now
  window.current = 0
  windows.delete(key)
  windows.set(key, window)
  return window
}

/** Adds `more` to a window of the same key that began at another time. The sum may count too much, but never too little. */
function joinWindows(window: Window, more: Window, now: number, windowMs: number): void {
  if (now - more.startedAt < windowMs) {
    window.current += more.current
    window.previous += more.previous
  } else if (now - more.startedAt < 2 * windowMs) window.previous += more.current
}

/** How long until one more event is allowed, if no other comes first. */
function waitMs({ startedAt, current, previous }: Window, { capacity, windowMs }: Rate, now: number): number {
  const inThisWindow = previous > 0 ? startedAt + windowMs * (1 - (capacity - 1 - current) / previous) : Number.NaN
  const fitsInThis = inThisWindow >= now && inThisWindow <= startedAt + windowMs
  // Otherwise in the next window, once enough of the current one no longer overlaps.
  const inNext = startedAt + windowMs + windowMs * Math.max(0, 1 - (capacity - 1) / Math.max(current, 1))
  return Math.max(1, Math.ceil((fitsInThis ? inThisWindow : inNext) - now))
}
