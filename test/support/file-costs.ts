/** Writes down what each test file of a run costs, and finds the dearest. */
import { appendFileSync, readFileSync } from 'node:fs'
import { performance } from 'node:perf_hooks'

/** The environment variable with the path of the list that all processes of a run append to. */
export const COSTS_VARIABLE = 'POSTERN_TEST_COSTS'

export interface FileCost {
  readonly file: string
  /** CPU seconds of the process while the file ran, and of the programs that it started and that ended. */
  readonly cpu: number
  readonly wall: number
}

/** Linux counts CPU time for a process in ticks of 10 ms. */
const TICKS_PER_SECOND = 100

/** Returns a function that is to be called after each file, and writes down what was spent since the last call. */
export function countCosts(): (file: string) => void {
  const list = process.env[COSTS_VARIABLE]
  let [cpu, wall] = [0, 0]
  return (file) => {
    if (list === undefined) return
    const [now, nowWall] = [cpuSeconds(), performance.now() / 1000]
    appendFileSync(list, `${JSON.stringify({ file, cpu: now - cpu, wall: nowWall - wall } satisfies FileCost)}\n`)
    cpu = now
    wall = nowWall
  }
}

export function readCosts(list: string): FileCost[] {
  const lines = readFileSync(list, 'utf8').split('\n').filter(Boolean)
  return lines.map((line) => JSON.parse(line) as FileCost)
}

export function dearest(costs: readonly FileCost[], count: number): string {
  const first = costs.toSorted((a, b) => b.cpu - a.cpu).slice(0, count)
  const rows = first.map(
    ({ file, cpu, wall }) => `${cpu.toFixed(1).padStart(7)}  ${wall.toFixed(1).padStart(7)}  ${file}`,
  )
  return [' CPU s   wall s  file', ...rows].join('\n')
}

/** Of this process and its children that ended; where the system does not count those, of this process alone. */
function cpuSeconds(): number {
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
