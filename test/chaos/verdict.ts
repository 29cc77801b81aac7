/** Judges what visitors noticed of upgrades. */
import type { ApiClient } from '../support/api-client.ts'
import type { VisitorsReport } from './visitors.ts'

/** One upgrade; times are in milliseconds since 1970. */
export interface Round {
  readonly number: number
  /** What was wrong with the new version, if anything. */
  readonly breakage: string | undefined
  readonly began: number
  /** When the new processes served, or were abandoned. */
  readonly done: number
  /** When the former processes had ended. */
  ended: number | undefined
}

export interface Verdict {
  /** Faults, each with its time relative to the upgrade before it. */
  readonly faults: readonly string[]
  /** Connections that were cut during an echo, after the drain time. */
  readonly cutAfterDrain: number
  /** Idle connections that were closed after the drain time. */
  readonly closedAfterDrain: number
  /** Failures through the official agent while it reconnected. */
  readonly official: number
}

/** How long before the log line of a finished upgrade the drain may begin, in milliseconds. */
const EARLY_MS = 100

/** How long after the drain time former processes may take to close remaining connections, in milliseconds. */
const LATE_MS = 3000

/** How long the official agent may take to come back after the former processes have ended, in milliseconds. */
const OFFICIAL_BACK_MS = 10_000

/** Kinds whose connections stay open until one side closes them. */
const longLived = /WebSocket|TCP .*kept|TCP kept/

export function judge({ failed, closed }: VisitorsReport, rounds: readonly Round[], drainMs: number): Verdict {
  const isAfterDrain = (at: number): boolean =>
    rounds.some(({ done, breakage }) => {
      const end = done + drainMs
      return breakage === undefined && at > end - EARLY_MS && at < end + LATE_MS
    })
  const whileReconnecting = (at: number): boolean =>
    rounds.some(({ began, ended }) => at > began && at < (ended ?? Number.POSITIVE_INFINITY) + OFFICIAL_BACK_MS)
  const faults: string[] = []
  let cutAfterDrain = 0
  let closedAfterDrain = 0
  let official = 0
  for (const { kind, began, ended, why } of failed) {
    if (kind === 'official agent' && whileReconnecting(ended)) official++
    else if (longLived.test(kind) && why.startsWith('cut with') && isAfterDrain(ended)) cutAfterDrain++
    else faults.push(`${kind}: ${why}; from ${relative(began, rounds)} to ${relative(ended, rounds)}`)
  }
  for (const { kind, at } of closed) {
    if (isAfterDrain(at)) closedAfterDrain++
    else faults.push(`${kind}: closed before the drain time was over; ${relative(at, rounds)}`)
  }
  return { faults, cutAfterDrain, closedAfterDrain, official }
}

/** Acknowledged writes that are missing. */
export async function lostWrites(api: ApiClient, { acknowledged }: VisitorsReport): Promise<string[]> {
  const stored = new Map<string, string>()
  for (let next: string | null = '/ip_policies?limit=100'; next !== null; ) {
    const page: { ip_policies: { id: string; description: string }[]; next_page_uri: string | null } =
      await api.get(next)
    for (const { id, description } of page.ip_policies) stored.set(id, description)
    next = page.next_page_uri
  }
  return acknowledged.flatMap(([id, description]) =>
    stored.get(id) === description ? [] : [`an acknowledged write is lost: ${id} (${description})`],
  )
}

/** `+120 ms (round 3, done +900)`: the time since the last upgrade began. */
function relative(at: number, rounds: readonly Round[]): string {
  const last = rounds.findLast(({ began }) => began <= at)
  if (!last) return 'before the first upgrade'
  const { number, breakage, began, done, ended } = last
  const facts = [`round ${number}`, breakage ?? `done +${done - began}`, ended && `ended +${ended - began}`]
  return `+${(at - began).toFixed(0)} ms (${facts.filter(Boolean).join(', ')})`
}
