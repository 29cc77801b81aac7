/** Finds the visitor that gives way when descriptors run short: the longest idle one of the source that has most (D104). */
import { Shares } from '../../lib/limits/shares.ts'
import { clientKeyOf } from '../../lib/net/client-key.ts'

/** An open connection of a visitor. */
export interface OpenVisit {
  readonly ip: string
  /** For how long nobody has waited for anything on it, in milliseconds; undefined while somebody does, or once it is closed. */
  readonly idleMs: () => number | undefined
  /** Closes it at once. */
  readonly close: () => void
}

/** Holds connections of visitors. */
interface Holder {
  visits(): Iterable<OpenVisit>
}

/** How long a look at all connections is relied upon, in milliseconds. */
const LOOK_MS = 1000

/** A look serves this part of the connections that it counted, so that it costs little for each. */
const LOOK_PART = 1 / 8

/** One that serves fewer is followed by a pause of so many times what it took. */
const PAUSE_TIMES = 10

interface Candidate {
  readonly visit: OpenVisit
  readonly source: string
  /** How many connections its source has while this one is there. */
  readonly held: number
  readonly idleMs: number
}

/** Keeps nothing of connections: it looks at all of them when one must give way, which serves those that follow as well. */
export class IdleVisitors {
  readonly #holders: Holder[] = []
  /** The next to give way comes last. */
  #candidates: Candidate[] = []
  #held = new Shares(Number.POSITIVE_INFINITY)
  /** For how many more newcomers the last look serves. */
  #left = 0
  #pausedUntil = 0
  #forgetting: NodeJS.Timeout | undefined

  /** Connections that these hold may be closed from now on. */
  watch(...holders: readonly Holder[]): void {
    this.#holders.push(...holders)
  }

  /** Closes a connection in favour of one from `ip`; false when none is idle but of sources that have less than this one. */
  giveWay = (ip: string): boolean => {
    if (this.#left-- <= 0) this.#look()
    const source = clientKeyOf(ip)
    if (this.#closeOne(source)) return true
    if (performance.now() < this.#pausedUntil) return false
    this.#look()
    return this.#closeOne(source)
  }

  #closeOne(source: string): boolean {
    for (let found = this.#take(source); found; found = this.#take(source)) {
      if (found.visit.idleMs() === undefined) continue
      found.visit.close()
      return true
    }
    return false
  }

  #take(source: string): Candidate | undefined {
    const next = this.#candidates.at(-1)
    if (!next || next.source === source || next.held > this.#held.heldBy(source)) return this.#candidates.pop()
    const own = this.#candidates.findLastIndex((each) => each.source === source)
    return own === -1 ? undefined : this.#candidates.splice(own, 1)[0]
  }

  #look(): void {
    const begun = performance.now()
    const idle = new Map<string, { visit: OpenVisit; idleMs: number }[]>()
    const shares = new Shares(Number.POSITIVE_INFINITY)
    for (const visit of this.#holders.flatMap((holder) => [...holder.visits()])) {
      const source = clientKeyOf(visit.ip)
      shares.add(source, 1)
      const idleMs = visit.idleMs()
      if (idleMs === undefined) continue
      const same = idle.get(source)
      if (same) same.push({ visit, idleMs })
      else idle.set(source, [{ visit, idleMs }])
    }
    this.#held = shares
    this.#left = Math.ceil(shares.used * LOOK_PART)
    this.#candidates = [...idle].flatMap(([source, visits]) =>
      visits
        .sort((a, b) => b.idleMs - a.idleMs)
        .map((each, i) => ({ ...each, source, held: shares.heldBy(source) - i })),
    )
    this.#candidates.sort((a, b) => a.held - b.held || a.idleMs - b.idleMs)
    const ended = performance.now()
    this.#pausedUntil = ended + PAUSE_TIMES * (ended - begun)
    clearTimeout(this.#forgetting)
    this.#forgetting = setTimeout(() => this.#forget(), LOOK_MS).unref()
  }

  /** Closed connections must not be held on to. */
  #forget(): void {
    this.#candidates = []
    this.#left = 0
  }
}
