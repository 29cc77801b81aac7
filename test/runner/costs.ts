/** What test files cost: CPU time of their processes, and of the programs that they started and that ended. */
import { readFileSync } from 'node:fs'
import { performance } from 'node:perf_hooks'

export interface Spent {
  /** CPU seconds. */
  readonly cpu: number
  /** Seconds on the clock. */
  readonly wall: number
}

export interface FileCost extends Spent {
  readonly file: string
}

/** Linux counts CPU time for a process in ticks of 10 ms. */
const TICKS_PER_SECOND = 100

/** Returns a function for what this process has spent since the last call; at first, since it started. */
export function countCosts(): () => Spent {
  let before: Spent = { cpu: 0, wall: 0 }
  return () => {
    const now: Spent = { cpu: cpuSeconds(), wall: performance.now() / 1000 }
    const spent = { cpu: now.cpu - before.cpu, wall: now.wall - before.wall }
    before = now
    return spent
  }
}

/** Of this process and its children that ended; where the system does not count those, of this process alone. */
export function cpuSeconds(): number {
  try {
    const stat = readFileSync('/proc/self/stat', 'utf8')
    // The second field is the name in brackets, which may contain spaces.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / TICKS_PER_SECOND
  } catch {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1e6
  }
}

export function dearest(costs: readonly FileCost[], count: number): string {
  const first = costs.toSorted((a, b) => b.cpu - a.cpu).slice(0, count)
  const column = (seconds: number) => seconds.toFixed(1).padStart(8)
  return [
    '   CPU s  clock s  file',
    ...first.map(({ file, cpu, wall }) => `${column(cpu)} ${column(wall)}  ${file}`),
  ].join('\n')
}
