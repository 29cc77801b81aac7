/** What visitors of several nodes may notice of faults, and what they must not. */
import { type SlowSpan, slowMs } from './witness.ts'

export type FaultKind =
  | 'kill'
  | 'stop'
  | 'freeze'
  | 'cut'
  | 'silence'
  | 'database cut'
  | 'database silent'
  | 'database restarted'

/** One fault; times are in milliseconds since 1970. */
export interface FaultSpan {
  readonly kind: FaultKind
  /** Undefined when it was of all. */
  readonly node: string | undefined
  readonly from: number
  /** When it had happened to all that it is about. */
  readonly struck: number
  /** When it was healed. */
  readonly until: number
}

/** A visit that did not go well. */
export interface FailedAsk {
  readonly address: string
  readonly form: 'alone' | 'pooled' | 'group'
  readonly node: string
  readonly began: number
  readonly ended: number
  readonly status: number
  readonly text: string
}

/** When a tunnel of an agent was online, by what the agent knew, and at which node. */
export interface OnlineSpan {
  readonly address: string
  readonly node: string
  readonly from: number
  readonly to: number
  /** Whether its agent ended it by itself. */
  readonly isLeft?: boolean
}

export interface Happened {
  readonly faults: readonly FaultSpan[]
  /** Of each agent its spans, in order. */
  readonly agents: readonly (readonly OnlineSpan[])[]
  /** When the machine was too slow for any limit to hold. */
  readonly slow?: readonly SlowSpan[]
}

export interface AskVerdict {
  /** Answers of other services. */
  readonly strange: readonly string[]
  /** Visits of pooled addresses that were lost without need. */
  readonly pooled: readonly string[]
  /** The same for other addresses. */
  readonly others: readonly string[]
  /** How many visits were lost with good reason, by reason. */
  readonly excused: Readonly<Record<string, number>>
}

/** What comes and goes is known at every node within this time, in milliseconds. */
const KNOWN_MS = 2000

/** Within this time somebody has asked for it at every node too, in milliseconds: what nobody asked for is not looked up. */
const ASKED_MS = 5000

/** After a fault was healed, all is as before within this time, in milliseconds. */
export const BACK_MS = 5000

/** A node that cannot tell the database for so long that it lives may count as dead, in milliseconds: its lease less one renewal. */
const LEASE_MS = 8000

export function judgeAsks(asks: readonly FailedAsk[], happened: Happened): AskVerdict {
  const excused: Record<string, number> = {}
  const strange: string[] = []
  const pooled: string[] = []
  const others: string[] = []
  for (const ask of asks) {
    const reason = ask.status === 200 ? undefined : excuse(ask, happened)
    if (ask.status === 200) strange.push(described(ask, happened))
    else if (reason !== undefined) excused[reason] = (excused[reason] ?? 0) + 1
    else if (ask.form === 'pooled') pooled.push(described(ask, happened))
    else others.push(described(ask, happened))
  }
  return { strange, pooled, others, excused }
}

/** Why nobody is to blame; undefined when somebody is. */
function excuse(ask: FailedAsk, { faults, agents, slow = [] }: Happened): string | undefined {
  const { node, began, ended } = ask
  const atIts = faults.some(
    (fault) => isOneOf(fault, ['kill', 'freeze']) && fault.node === node && overlaps(fault, began, ended),
  )
  if (atIts) return 'its node was killed or frozen'
  const inFlight = faults.some(
    (fault) => isOneOf(fault, ['kill', 'freeze', 'cut', 'silence']) && began <= fault.struck && ended >= fault.from,
  )
  if (inFlight) return 'it was in flight when a node was killed, frozen or cut off'
  const own = agents.map((spans) => spans.filter(({ address }) => address === ask.address))
  // One that leaves cuts off those whom it serves; one that moves does not, nor may its connection end for nothing.
  const hasLeft = own.flat().some(({ to, isLeft }) => isLeft && to >= began && to <= ended)
  if (hasLeft) return 'an agent left meanwhile'
  if (!own.some((spans) => isLive(spans, ask, faults))) return 'no agent was live and in reach throughout'
  return slowMs(slow, began - KNOWN_MS, ended) > 0 ? 'the machine stood still' : undefined
}

/** Whether an agent was online throughout, where the visitor's node could know and reach it. */
function isLive(
  spans: readonly OnlineSpan[],
  { node, began, ended }: FailedAsk,
  faults: readonly FaultSpan[],
): boolean {
  const since = began - KNOWN_MS
  const during = spans.filter(({ from, to }) => to >= since && from <= ended)
  const [first] = during
  if (!first || first.from > since || (during.at(-1)?.to ?? 0) < ended) return false
  // One that moves is at the old node until it is at the new one.
  if (during.some((span, i) => i > 0 && span.from !== during[i - 1]?.to)) return false
  return during.every((at) => isReached(at, { node, began, ended }, faults))
}

function isReached(
  at: OnlineSpan,
  { node, began, ended }: Pick<FailedAsk, 'node' | 'began' | 'ended'>,
  faults: readonly FaultSpan[],
): boolean {
  const isHere = at.node === node
  const ofAgent = (fault: FaultSpan): boolean => fault.node === undefined || fault.node === at.node
  const ofVisitor = (fault: FaultSpan): boolean => fault.node === undefined || fault.node === node
  // A node that has just started knows nothing yet, and one whose lease had run out tells anew what it has.
  const isNews = (fault: FaultSpan): boolean =>
    isOneOf(fault, ['kill', 'stop']) ? fault.node === node : ofAgent(fault) && losesLease(fault)
  const news = faults.filter((fault) => fault.until <= began && isNews(fault)).map(({ until }) => until)
  const knownFrom = Math.max(at.from, ...news)
  return !faults.some((fault) => {
    const { from, until } = fault
    const isFresh = began <= until + BACK_MS
    if (isOneOf(fault, ['kill', 'freeze']) && ofAgent(fault)) return ended >= from && began <= until + lostLease(fault)
    if (isHere) return false
    if (isOneOf(fault, ['cut', 'silence'])) return ofAgent(fault) && ended >= from && isFresh
    if (!fault.kind.startsWith('database') && fault.kind !== 'freeze') return false
    // Others take it for dead.
    if (ofAgent(fault) && ended >= from + LEASE_MS && until >= from + LEASE_MS && isFresh) return true
    // It came when one of the two could not be told.
    const isUntold = from <= knownFrom + ASKED_MS && until >= knownFrom && isFresh
    return isUntold && (ofAgent(fault) || ofVisitor(fault))
  })
}

/** How much longer than a fault of a node others may take it for dead, in milliseconds. */
function lostLease(fault: FaultSpan): number {
  return fault.kind === 'kill' || losesLease(fault) ? BACK_MS : 0
}

/** Whether a node could not tell the database for so long that it lives. */
function losesLease({ kind, from, until }: FaultSpan): boolean {
  return (kind === 'freeze' || kind.startsWith('database')) && until - from >= LEASE_MS
}

function isOneOf({ kind }: FaultSpan, kinds: readonly FaultKind[]): boolean {
  return kinds.includes(kind)
}

function overlaps({ from, until }: FaultSpan, began: number, ended: number): boolean {
  return ended >= from && began <= until
}

function described({ address, node, began, ended, status, text }: FailedAsk, happened: Happened): string {
  const what = `${status} ${text.replaceAll(/\s+/g, ' ').slice(0, 160)}`
  const where = happened.agents.flatMap((spans) =>
    spans.filter((span) => span.address === address && span.to >= began - ASKED_MS && span.from <= ended),
  )
  const at = where.map((span) => `${span.node} from ${since(span.from, began)}`).join(', ')
  return `${time(began)} ${address} at ${node}, after ${ended - began} ms: ${what}; agents: ${at || 'none'}; ${lastFaults(began, happened)}`
}

/** The faults around a time, for people who look for the cause. */
export function lastFaults(at: number, { faults }: Pick<Happened, 'faults'>): string {
  const near = faults.filter(({ from, until }) => from <= at && until + 2 * BACK_MS >= at)
  const told = near.map(
    ({ kind, node, from, until }) => `${kind} of ${node ?? 'all'} from ${since(from, at)} to ${since(until, at)}`,
  )
  return told.join(', ') || 'no fault before it'
}

function since(time: number, at: number): string {
  return `${time <= at ? '-' : '+'}${Math.abs((time - at) / 1000).toFixed(1)} s`
}

export function time(at: number): string {
  return new Date(at).toISOString().slice(11, 23)
}
