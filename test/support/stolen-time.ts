/** How much of a machine's time went to others while it had work to do, as the kernel counts it ("steal"). */
import { readFileSync } from 'node:fs'

/** The positions of the counts in the first line of `/proc/stat`, in ticks since the machine started. */
const IDLE = 3
const WAITING = 4
const STOLEN = 7
const COUNTS = 8

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
