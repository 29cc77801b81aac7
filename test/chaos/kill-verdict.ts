/** Judges what visitors noticed of a killed process: only what was in that process may fail. */
import type { ClosedVisit, FailedVisit, VisitorsReport } from './visitors.ts'

export interface Kill {
  readonly round: number
  readonly what: 'control' | 'worker'
  /** In milliseconds since 1970. */
  readonly at: number
  /** The visitors' local ports of the connections that died with it. */
  readonly ports: ReadonlySet<number>
  /** Whether it had the session of our agent, and of the official one. */
  readonly hadAgents: { readonly own: boolean; readonly official: boolean }
  /** How long until a visitor of each agent was served again, in milliseconds. */
  readonly backMs: { readonly own: number; readonly official: number }
  /** Whether the process killed before was not replaced yet; agents may then have to wait for the control process. */
  readonly isDouble: boolean
}

export interface KillVerdict {
  readonly faults: readonly string[]
  /** Excused failures, by reason and then by kind. */
  readonly excused: Readonly<Record<string, Readonly<Record<string, number>>>>
  /** Failures through the official agent, which is slow to reconnect. */
  readonly official: number
  /** The longest time until visitors of each agent were served again, in milliseconds. */
  readonly backMs: { readonly own: number; readonly official: number }
}

/** How long agents of a process that died may take to come back, in milliseconds. */
const BACK_MS = 2000

/** How long after a kill a client may notice that its connection is gone, in milliseconds: the other end is silent. */
const FOUND_OUT_MS = 1000

/** How long agents may be away when the control process is down too, in milliseconds. */
const DOUBLE_BACK_MS = 10_000

/** How long after a kill the official agent may take to come back, in milliseconds. */
const OFFICIAL_BACK_MS = 10_000

export function judgeKills({ failed, closed }: VisitorsReport, kills: readonly Kill[]): KillVerdict {
  const faults: string[] = []
  const excused: Record<string, Record<string, number>> = {}
  let official = 0
  for (const each of failed) {
    const { kind, began, ended, why } = each
    const reason = excuse(each, kills)
    if (kind === 'official agent' && reason === undefined && isOfficialAway(ended, kills)) official++
    else if (reason === undefined)
      faults.push(`${kind}: ${why}; ${relative(began, kills)} to ${relative(ended, kills)}`)
    else {
      const kinds = excused[reason] ?? {}
      excused[reason] = { ...kinds, [kind]: (kinds[kind] ?? 0) + 1 }
    }
  }
  for (const each of closed) {
    const reason = excuse({ ...each, began: each.at, ended: each.at, ports: [each.port] }, kills)
    if (reason === undefined) faults.push(`${each.kind}: closed while idle; ${relative(each.at, kills)}`)
  }
  const most = (kind: 'own' | 'official') => Math.max(...kills.map(({ backMs }) => backMs[kind]))
  const backMs = { own: most('own'), official: most('official') }
  for (const { round, what, backMs, isDouble } of kills) {
    if (isDouble) continue
    if (backMs.own > BACK_MS) faults.push(`our agent was back after ${backMs.own} ms (round ${round}, ${what})`)
    if (backMs.official > BACK_MS) {
      faults.push(`the official agent was back after ${backMs.official} ms (round ${round}, ${what})`)
    }
  }
  return { faults, excused, official, backMs }
}

/** Why a failure is excused; undefined when it is a fault. */
function excuse(
  { kind, began, ended, ports }: Pick<FailedVisit & ClosedVisit, 'kind' | 'began' | 'ended' | 'ports'>,
  kills: readonly Kill[],
): string | undefined {
  for (const { at, what, ports: died, hadAgents, isDouble } of kills) {
    if (ended < at) continue
    if (isDouble && kind.startsWith('agent ') && hadAgents.own && ended < at + DOUBLE_BACK_MS) {
      return 'its agent could not come back while the control process was away'
    }
    if (began > at + FOUND_OUT_MS) continue
    if (ports.some((port) => died.has(port))) return `its connection was in the ${what}`
    // Another worker has the visitor, but what was on its way through the dead worker is lost.
    if (kind.startsWith('agent ') && hadAgents.own && (began <= at || isLongLived(kind))) {
      return 'its agent was in the worker, and it was on its way'
    }
  }
  return undefined
}

/** Kept connections were open before the kill, whenever a visit began. */
function isLongLived(kind: string): boolean {
  return kind.includes('WebSocket') || kind.endsWith('TCP kept')
}

function isOfficialAway(at: number, kills: readonly Kill[]): boolean {
  return kills.some((kill) => kill.hadAgents.official && at >= kill.at && at < kill.at + OFFICIAL_BACK_MS)
}

function relative(at: number, kills: readonly Kill[]): string {
  const last = kills.findLast((kill) => kill.at <= at)
  if (!last) return 'before the first kill'
  const agents = [last.hadAgents.own && 'ours', last.hadAgents.official && 'official'].filter(Boolean).join(' and ')
  return `+${(at - last.at).toFixed(0)} ms (round ${last.round}, ${last.what}, agents: ${agents || 'none'})`
}
