/** How much of a machine's time went to others while it had work to do, as the kernel counts it ("steal"). */
import { readFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'

/** The positions of the counts in the first line of `/proc/stat`, in ticks since the machine started. */
const IDLE = 3
const WAITING = 4
const STOLEN = 7
const COUNTS = 8

/**
 * From which share of its time on, taken by others, a machine tells nothing of what failed on it: tests wait for clocks of
 * seconds, and a machine that stands still is late for them.
 */
export const STOLEN_SHARE = 0.1

/** How long such a machine is waited for, and how often it is looked at. */
const WAIT_MS = 600_000
const LOOK_MS = 15_000

/** Returns a function for the share since this call; 0 if the kernel does not report it. */
export function watchStolenTime(read: () => string = readStat): () => number {
  const before = countsIn(read())
  return () => {
    const after = countsIn(read())
    const since = (place: number): number => (after[place] ?? 0) - (before[place] ?? 0)
    const all = after.reduce((sum, _, place) => sum + since(place), 0)
    const wanted = all - since(IDLE) - since(WAITING)
    return wanted > 0 ? since(STOLEN) / wanted : 0
  }
}

/** Resolves once the machine is ours again, or after ten minutes. */
export async function untilOurs(signal: AbortSignal): Promise<void> {
  for (let waited = 0; waited < WAIT_MS && !signal.aborted; waited += LOOK_MS) {
    const stolenShare = watchStolenTime()
    await setTimeout(LOOK_MS)
    if (stolenShare() < STOLEN_SHARE) return
  }
}

function countsIn(stat: string): number[] {
  return /^cpu +(.*)/.exec(stat)?.[1]?.split(' ').slice(0, COUNTS).map(Number) ?? []
}

function readStat(): string {
  try {
    return readFileSync('/proc/stat', 'utf8')
  } catch {
    // Not Linux.
    return ''
  }
}
