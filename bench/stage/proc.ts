/** What Linux tells in /proc of a tree of processes: who belongs to it, its CPU time and its memory. */
import { readdirSync, readFileSync } from 'node:fs'

/** Linux counts CPU time in hundredths of a second towards programs, whatever its own clock does. */
const TICKS_PER_SECOND = 100

const BYTES_PER_KIB = 1024

export interface ProcessStat {
  readonly pid: number
  readonly parent: number
  /** Ticks of its own and of the children that it has waited for. */
  readonly ticks: number
  /** When it began; tells two processes apart that had the same pid. */
  readonly startedAt: number
}

/** The processes with these pids and all that they started, as far as they live. */
export function treeOf(roots: readonly number[]): ProcessStat[] {
  const all = everyProcess()
  const tree = all.filter(({ pid }) => roots.includes(pid))
  // It grows while it is walked.
  for (const { pid } of tree) tree.push(...all.filter(({ parent }) => parent === pid))
  return tree
}

/** CPU seconds that the trees of these processes have used so far, user and system. */
export function cpuSeconds(roots: readonly number[]): number {
  return treeOf(roots).reduce((sum, { ticks }) => sum + ticks, 0) / TICKS_PER_SECOND
}

/** Resident memory of the trees of these processes, in bytes: now, and the most that each ever had. */
export function residentBytes(roots: readonly number[]): { now: number; peak: number } {
  const sum = { now: 0, peak: 0 }
  for (const { pid } of treeOf(roots)) {
    const status = readOf(`/proc/${pid}/status`)
    sum.now += kib(status, 'VmRSS') * BYTES_PER_KIB
    sum.peak += kib(status, 'VmHWM') * BYTES_PER_KIB
  }
  return sum
}

/** Whether the very process that `stat` told of still lives. */
export function isAlive({ pid, startedAt }: ProcessStat): boolean {
  return parseStat(readOf(`/proc/${pid}/stat`))?.startedAt === startedAt
}

/** One line of /proc/<pid>/stat; undefined for a process that is gone or only waits to be buried. */
export function parseStat(line: string): ProcessStat | undefined {
  // The second field is the name in brackets and may hold spaces and brackets; numbers come after the last one.
  const nameEnds = line.lastIndexOf(')')
  const fields = line.slice(nameEnds + 2).split(' ')
  if (nameEnds < 0 || fields[0] === 'Z' || fields[0] === 'X') return undefined
  // proc_pid_stat(5) counts from 1 and with pid and name; what is left here begins with its field 3.
  const field = (number: number): number => Number(fields[number - 3])
  return {
    pid: Number.parseInt(line, 10),
    parent: field(4),
    ticks: field(14) + field(15) + field(16) + field(17),
    startedAt: field(22),
  }
}

function everyProcess(): ProcessStat[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return pids.flatMap((pid) => parseStat(readOf(`/proc/${pid}/stat`)) ?? [])
}

function kib(status: string, name: string): number {
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1] ?? 0)
}

/** `''` when the process is gone. */
function readOf(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}
