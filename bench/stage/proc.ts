/** Reads trees of processes from Linux's /proc: their members, CPU time and memory. */
import { readdirSync, readFileSync } from 'node:fs'

/** Linux reports CPU time to programs in hundredths of a second, whatever its own clock does. */
const TICKS_PER_SECOND = 100

const BYTES_PER_KIB = 1024

export interface ProcessStat {
  readonly pid: number
  readonly parent: number
  /** Ticks of its own, and of children that it has waited for. */
  readonly ticks: number
  /** When it started, to tell apart two processes with the same pid. */
  readonly startedAt: number
}

/** The processes with these pids and all their descendants that are alive. */
export function treeOf(roots: readonly number[]): ProcessStat[] {
  const all = everyProcess()
  const tree = all.filter(({ pid }) => roots.includes(pid))
  // The list grows while the loop runs over it.
  for (const { pid } of tree) tree.push(...all.filter(({ parent }) => parent === pid))
  return tree
}

/** CPU seconds that the trees of these processes have used so far, user and system together. */
export function cpuSeconds(roots: readonly number[]): number {
  return treeOf(roots).reduce((sum, { ticks }) => sum + ticks, 0) / TICKS_PER_SECOND
}

/** Resident memory of the trees of these processes, in bytes: now, and the sum of their peaks. */
export function residentBytes(roots: readonly number[]): { now: number; peak: number } {
  const sum = { now: 0, peak: 0 }
  for (const { pid } of treeOf(roots)) {
    const status = readOf(`/proc/${pid}/status`)
    sum.now += kib(status, 'VmRSS') * BYTES_PER_KIB
    sum.peak += kib(status, 'VmHWM') * BYTES_PER_KIB
  }
  return sum
}

/** The memory that a process uses, in bytes. */
export interface ProcessMemory {
  /** Pages that it shares with n others count as one nth. */
  readonly share: number
  /** All pages that it uses, shared or not. */
  readonly resident: number
}

export function memoryOf(pid: number): ProcessMemory {
  const rollup = readOf(`/proc/${pid}/smaps_rollup`)
  return { share: kib(rollup, 'Pss') * BYTES_PER_KIB, resident: kib(rollup, 'Rss') * BYTES_PER_KIB }
}

/** The arguments of a process, its program first; empty when it is gone. */
export function argumentsOf(pid: number): string[] {
  return readOf(`/proc/${pid}/cmdline`).split('\0').slice(0, -1)
}

/** Whether this very process, and not a later one with its pid, is alive. */
export function isAlive({ pid, startedAt }: ProcessStat): boolean {
  return parseStat(readOf(`/proc/${pid}/stat`))?.startedAt === startedAt
}

/** Parses /proc/<pid>/stat; undefined for a process that is gone or a zombie. */
export function parseStat(line: string): ProcessStat | undefined {
  // The second field is the name in brackets, which may itself have spaces and brackets; the rest follows the last one.
  const nameEnds = line.lastIndexOf(')')
  const fields = line.slice(nameEnds + 2).split(' ')
  if (nameEnds < 0 || fields[0] === 'Z' || fields[0] === 'X') return undefined
  // proc_pid_stat(5) numbers fields from 1, pid and name included; `fields` begins with number 3.
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
