/** Turns at work that goes on a bounded number of times at once, shared by owners: while others wait, one has a quarter. */
import { Shares } from './shares.ts'

interface SharedTurnsOptions {
  /** Most turns at once. */
  readonly atOnce: number
  /** Most that wait for a turn; beyond that, the owner with most of them gives up the oldest of its largest source. */
  readonly waiting: number
  /** How long one waits, in milliseconds. */
  readonly waitMs: number
  /** Most turns of one owner, even while nobody else wants any; by default all. */
  readonly each?: number
  /** An owner with fewer turns than this has the next at once, however many others have; by default it may wait. */
  readonly always?: number
}

/** Called once, with whether its turn has come. */
type Waiting = (hasTurn: boolean) => void

/**
 * @example
 * const turns = new SharedTurns({ atOnce: 100, waiting: 1000, waitMs: 2000 })
 * if (!(await turns.take(owner, source))) return busy()
 * try {
 *   await work()
 * } finally {
 *   turns.over(owner)
 * }
 */
export class SharedTurns {
  readonly #options: SharedTurnsOptions
  readonly #taken: Shares
  readonly #queued: Shares
  /** Those that wait, by owner and source, oldest first; the owner and the source whose turn is next come first. */
  readonly #waiting = new Map<string, Map<string, Set<Waiting>>>()

  constructor(options: SharedTurnsOptions) {
    this.#options = options
    this.#taken = new Shares(options.atOnce)
    this.#queued = new Shares(options.waiting)
  }

  /** True when the turn has come at once; else resolves with whether it came in time. Each turn that came ends with `over`. */
  take(owner: string, source = ''): true | Promise<boolean> {
    // While somebody waits who may have more, every place is taken.
    const hasRoom = this.#taken.used < this.#options.atOnce && this.#mayHaveMore(owner)
    if (hasRoom || this.#isDue(owner)) return this.#begin(owner)
    const giver = this.#queued.giver(owner)
    if (giver !== undefined) {
      const [from, waiting] = largestOf(this.#waiting.get(giver))
      const [oldest] = waiting
      if (!oldest) return Promise.resolve(false)
      this.#leave(giver, from, oldest)
    }
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const timer = setTimeout(() => this.#leave(owner, source, settle), this.#options.waitMs).unref()
    const settle: Waiting = (hasTurn) => {
      clearTimeout(timer)
      resolve(hasTurn)
    }
    const sources = this.#waiting.get(owner) ?? new Map<string, Set<Waiting>>()
    const same = sources.get(source) ?? new Set()
    this.#waiting.set(owner, sources.set(source, same.add(settle)))
    this.#queued.add(owner, 1)
    return promise
  }

  /** A turn of this owner is over. */
  over(owner: string): void {
    this.#taken.add(owner, -1)
    const due = this.#isDue(owner) ? owner : undefined
    const next = this.#taken.used < this.#options.atOnce ? this.#next() : due
    const [from] = this.#waiting.get(next ?? '') ?? []
    const [first] = from?.[1] ?? []
    if (next === undefined || !from || !first) return
    this.#remove(next, from[0], first)
    this.#begin(next)
    first(true)
  }

  #begin(owner: string): true {
    this.#taken.add(owner, 1)
    return true
  }

  #isDue(owner: string): boolean {
    return this.#taken.heldBy(owner) < (this.#options.always ?? 0)
  }

  #mayHaveMore(owner: string): boolean {
    return this.#taken.heldBy(owner) < (this.#options.each ?? this.#options.atOnce)
  }

  /** The first owner that has less than its share; when all who wait have more, the first of them. */
  #next(): string | undefined {
    let first: string | undefined
    for (const owner of this.#waiting.keys()) {
      if (!this.#mayHaveMore(owner)) continue
      if (!this.#taken.hasShare(owner)) return owner
      first ??= owner
    }
    return first
  }

  #leave(owner: string, source: string, waiting: Waiting): void {
    this.#remove(owner, source, waiting)
    waiting(false)
  }

  /** The next one of the owner, and of the source, comes after those of all others. */
  #remove(owner: string, source: string, waiting: Waiting): void {
    const sources = this.#waiting.get(owner)
    const same = sources?.get(source)
    if (!sources || !same?.delete(waiting)) return
    this.#queued.add(owner, -1)
    putLast(sources, source, same)
    putLast(this.#waiting, owner, sources)
  }
}

function putLast<T extends { readonly size: number }>(all: Map<string, T>, key: string, value: T): void {
  all.delete(key)
  if (value.size > 0) all.set(key, value)
}

function largestOf(sources: ReadonlyMap<string, ReadonlySet<Waiting>> = new Map()): [string, ReadonlySet<Waiting>] {
  let largest: [string, ReadonlySet<Waiting>] = ['', new Set()]
  for (const each of sources) if (each[1].size > largest[1].size) largest = each
  return largest
}
