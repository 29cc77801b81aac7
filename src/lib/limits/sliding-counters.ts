/** Rate limits over sliding windows: the port that modules use, and its implementation in one process's bounded memory. */

/** Counts events across connections, such as the requests of one visitor. */
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

/** The most keys with a separate counter, for each window length; a counter takes about 100 bytes. */
const MAX_KEYS = 100_000
/** How many expired keys each new key may remove; more than one, so that their number shrinks. */
const SWEPT = 2
/** The shared counter of keys that come when the table is full, so that sending ever new keys gains nothing. */
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

/** How many keys a copy examines, which takes some milliseconds, and how many it contains at most. */
const MAX_LOOKED_AT = 100_000
const MAX_COPIED = 10_000

interface Window {
  /** When the window of `current` began. */
  startedAt: number
  current: number
  previous: number
}

export class SlidingCounters implements Counters {
  /** By window length, then by key, in the order in which their windows began. */
  readonly #windows = new Map<number, Map<string, Window>>()
  readonly #now: () => number
  readonly #maxKeys: number

  /** `now` is in milliseconds, of a clock that never goes back. */
  constructor({ now = () => performance.now(), maxKeys = MAX_KEYS } = {}) {
    this.#now = now
    this.#maxKeys = maxKeys
  }

  /** The number of keys. */
  get size(): number {
    let size = 0
    for (const windows of this.#windows.values()) size += windows.size
    return size
  }

  take(key: string, { capacity, windowMs }: Rate): Taken {
    const now = this.#now()
    const window = this.#window(key, windowMs, now)
    // The part of the previous window that still overlaps counts too, as if its events had been spread evenly.
    const share = 1 - (now - window.startedAt) / windowMs
    const used = window.previous * share + window.current
    if (used + 1 > capacity) return { isAllowed: false, waitMs: waitMs(window, { capacity, windowMs }, now) }
    window.current++
    return { isAllowed: true, waitMs: 0 }
  }

  /** Takes back one counted event. In a later window it does nothing, since the event counts for less there. */
  giveBack(key: string, windowMs: number): void {
    const window = this.#windows.get(windowMs)?.get(key)
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
    const window = this.#windows.get(windowMs)?.get(key)
    return window !== undefined && this.#now() - window.startedAt < 2 * windowMs
  }

  /** Adds events that were counted elsewhere. */
  add(windows: readonly CountedWindow[]): void {
    const now = this.#now()
    for (const { key, windowMs, ageMs, current, previous } of windows) {
      const added: Window = { startedAt: now - ageMs, current, previous }
      const known = this.#windows.get(windowMs)?.get(key)
      if (known && now - known.startedAt < 2 * windowMs) {
        joinWindows(this.#window(key, windowMs, now), added, now, windowMs)
      } else if (ageMs < 2 * windowMs) {
        const window = this.#window(key, windowMs, now)
        // Keys beyond the limit only add their count to the shared counter.
        if (this.#windows.get(windowMs)?.get(key) === window) Object.assign(window, added)
        else joinWindows(window, added, now, windowMs)
      }
    }
  }

  /** Removes a key and returns its count. */
  remove(key: string, windowMs: number): CountedWindow | undefined {
    const windows = this.#windows.get(windowMs)
    const window = windows?.get(key)
    if (!windows || !window) return undefined
    windows.delete(key)
    const { startedAt, current, previous } = window
    const ageMs = this.#now() - startedAt
    return ageMs < 2 * windowMs ? { key, windowMs, ageMs, current, previous } : undefined
  }

  /** All keys with their window lengths. Counting may continue during the iteration. */
  *keys(): Generator<readonly [key: string, windowMs: number], void> {
    for (const [windowMs, windows] of this.#windows) {
      for (const key of windows.keys()) if (key !== OTHERS) yield [key, windowMs]
    }
  }

  /** A copy of the counts of keys that begin with `prefix`; incomplete when there are very many keys. */
  counted(prefix: string): CountedWindow[] {
    const now = this.#now()
    const found: CountedWindow[] = []
    let lookedAt = 0
    for (const [windowMs, windows] of this.#windows) {
      for (const [key, { startedAt, current, previous }] of windows) {
        if (++lookedAt > MAX_LOOKED_AT || found.length === MAX_COPIED) return found
        if (key.startsWith(prefix)) found.push({ key, windowMs, ageMs: now - startedAt, current, previous })
      }
    }
    return found
  }

  #window(key: string, windowMs: number, now: number): Window {
    const windows = this.#windows.get(windowMs) ?? new Map<string, Window>()
    this.#windows.set(windowMs, windows)
    const known = windows.get(key)
    if (known && now - known.startedAt < windowMs) return known
    if (known) return renew(windows, key, known, now, windowMs)
    sweep(windows, now, windowMs)
    if (windows.size < this.#maxKeys || key === OTHERS) return insert(windows, key, now)
    return this.#window(OTHERS, windowMs, now)
  }
}

function insert(windows: Map<string, Window>, key: string, now: number): Window {
  const window: Window = { startedAt: now, current: 0, previous: 0 }
  windows.set(key, window)
  return window
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

/** Drops some expired keys, whose counts no longer matter. */
function sweep(windows: Map<string, Window>, now: number, windowMs: number): void {
  let swept = 0
  for (const [key, { startedAt }] of windows) {
    if (swept++ === SWEPT || now - startedAt < 2 * windowMs) return
    windows.delete(key)
  }
}

/** How long until one more event is allowed, if no other comes first. */
function waitMs({ startedAt, current, previous }: Window, { capacity, windowMs }: Rate, now: number): number {
  const inThisWindow = previous > 0 ? startedAt + windowMs * (1 - (capacity - 1 - current) / previous) : Number.NaN
  const fitsInThis = inThisWindow >= now && inThisWindow <= startedAt + windowMs
  // Otherwise in the next window, once enough of the current one no longer overlaps.
  const inNext = startedAt + windowMs + windowMs * Math.max(0, 1 - (capacity - 1) / Math.max(current, 1))
  return Math.max(1, Math.ceil((fitsInThis ? inThisWindow : inNext) - now))
}
