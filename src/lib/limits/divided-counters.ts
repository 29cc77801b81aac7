/** Rate limits that several nodes share: each node lets its part through, without asking the others (D61). */
import type { Counters, Rate } from './sliding-counters.ts'

/** One of several nodes among which limits are divided. */
export interface LimitPart {
  readonly nodes: number
  /** Its place among them, from 0: the first ones have what does not divide evenly. */
  readonly rank: number
}

/** All of it. */
export const undivided: LimitPart = { nodes: 1, rank: 0 }

/**
 * Takes from the node's part of each limit. Only the capacity changes when a node comes or goes: what was counted counts
 * on.
 */
export function dividedCounters(counters: Counters, part: () => LimitPart): Counters {
  return { take: (key, rate) => counters.take(key, partOf(rate, part())) }
}

/** The part of the node `self` among others, by their ids, so that all nodes agree. */
export function limitPartOf(self: string, others: Iterable<string>): LimitPart {
  const ids = [...others]
  return { nodes: ids.length + 1, rank: ids.filter((id) => id < self).length }
}

/** At least one: a limit that lets nobody through would close the address. */
function partOf(rate: Rate, { nodes, rank }: LimitPart): Rate {
  if (nodes === 1) return rate
  const { capacity, windowMs } = rate
  const more = rank < capacity % nodes ? 1 : 0
  return { capacity: Math.max(1, Math.floor(capacity / nodes) + more), windowMs }
}
