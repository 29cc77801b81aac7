/** Rate limits that several nodes share: each node admits its part without asking the others (D61). */
import type { Counters, Rate } from './sliding-counters.ts'

/** One of several nodes among which limits are divided. */
export interface LimitPart {
  readonly nodes: number
  /** Its place among them, from 0: the first nodes get the remainder of the division. */
  readonly rank: number
}

/** The whole limit. */
export const undivided: LimitPart = { nodes: 1, rank: 0 }

/**
 * Counts against the node's part of each limit. When a node comes or goes, only the capacity changes: earlier counts
 * remain.
 */
export function dividedCounters(counters: Counters, part: () => LimitPart): Counters {
  return { take: (key, rate) => counters.take(key, partOf(rate, part())) }
}

/** The part of the node `self` among others, by their ids, so that all nodes agree. */
export function limitPartOf(self: string, others: Iterable<string>): LimitPart {
  const ids = [...others]
  return { nodes: ids.length + 1, rank: ids.filter((id) => id < self).length }
}

/** At least one, since a limit that admits nobody would close the address. */
function partOf(rate: Rate, { nodes, rank }: LimitPart): Rate {
  if (nodes === 1) return rate
  const { capacity, windowMs } = rate
  const more = rank < capacity % nodes ? 1 : 0
  return { capacity: Math.max(1, Math.floor(capacity / nodes) + more), windowMs }
}
