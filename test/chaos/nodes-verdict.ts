/** Judges failed visits at several nodes: which of them the faults excuse, and which they do not. */
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
  /** Undefined when it affected all. */
  readonly node: string | undefined
  readonly from: number
  /** When it had taken full effect. */
  readonly struck: number
  /** When it was healed. */
  readonly until: number
}

/** A failed visit. */
export interface FailedAsk {
  readonly address: string
  readonly form: 'alone' | 'pooled' | 'group'
  readonly node: string
  readonly began: number
  readonly ended: number
  readonly status: number
  readonly text: string
}

/** When and at which node a tunnel was online, as its agent knew. */
export interface OnlineSpan {
  readonly address: string
  readonly node: string
  readonly from: number
  readonly to: number
  /** Whether its agent left of its own accord. */
  readonly isLeft?: boolean
}

export interface Happened {
  readonly faults: readonly FaultSpan[]
  /** The spans of each agent, in order. */
  readonly agents: readonly (readonly OnlineSpan[])[]
  /** When the machine was too slow to meet any limit. */
  readonly slow?: readonly SlowSpan[]
}

export interface AskVerdict {
  /** Responses of the wrong service. */
  readonly strange: readonly string[]
  /** Lost visits of pooled addresses without an excuse. */
  readonly pooled: readonly string[]
  /** The same for other addresses. */
  readonly others: readonly string[]
  /** How many visits were lost with an excuse, by reason. */
  readonly excused: Readonly<Record<string, number>>
}

/** How long until every node knows of a tunnel that came or went, in milliseconds. */
const KNOWN_MS = 2000

/** How long until it was also requested at every node, in milliseconds: nodes look up only what is requested. */
const ASKED_MS = 5000

/** How long after a fault was healed until all is as before, in milliseconds. */
export const BACK_MS = 5000

/** How long without a renewal until a node may count as dead, in milliseconds: its lease less one renewal. */
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

/** Why a failure is excused; undefined when it is a fault. */
function excuse(ask: FailedAsk, { faults, agents, slow = [] }: Happened): string | undefined {
  const { node, began, ended } = ask
  const isNodeDown = faults.some(
    (fault) => isOneOf(fault, ['kill', 'freeze']) && fault.node === node && overlaps(fault, began, ended),
  )
  if (isNodeDown) return 'its node was killed or frozen'
  const inFlight = faults.some(
    (fault) => isOneOf(fault, ['kill', 'freeze', 'cut', 'silence']) && began <= fault.struck && ended >= fault.from,
  )
  if (inFlight) return 'it was in flight when a node was killed, frozen or cut off'
  const own = agents.map((spans) => spans.filter(({ address }) => address === ask.address))
  // An agent that leaves cuts off its visitors. One that moves must not, and its connection must not end without cause.
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
  // An agent that moves is at its old node until it is at the new one.
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
  // A node that has just started knows nothing yet, and one whose lease expired announces again what it has.
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
    // Other nodes consider it dead.
    if (ofAgent(fault) && ended >= from + LEASE_MS && until >= from + LEASE_MS && isFresh) return true
    // The tunnel came while one of the two nodes could not learn of it.
    const isUnknown = from <= knownFrom + ASKED_MS && until >= knownFrom && isFresh
    return isUnknown && (ofAgent(fault) || ofVisitor(fault))
  })
}

/** How long after a fault of a node other nodes may still consider it dead, in milliseconds. */
function lostLease(fault: FaultSpan): number {
  return fault.kind === 'kill' || losesLease(fault) ? BACK_MS : 0
}

/** Whether a fault keeps a node from renewing its lease for long enough to lose it. */
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

/** The faults around a time, for people who search for the cause. */
export function lastFaults(at: number, { faults }: Pick<Happened, 'faults'>): string {
  const near = faults.filter(({ from, until }) => from <= at && until + 2 * BACK_MS >= at)
  const lines = near.map(
    ({ kind, node, from, until }) => `${kind} of ${node ?? 'all'} from ${since(from, at)} to ${since(until, at)}`,
  )
  return lines.join(', ') || 'no fault before it'
}

function since(time: number, at: number): string {
  return `${time <= at ? '-' : '+'}${Math.abs((time - at) / 1000).toFixed(1)} s`
}

export function time(at: number): string {
  return new Date(at).toISOString().slice(11, 23)
}
