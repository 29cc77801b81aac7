/**
 * Runs jobs in the order of their list: one for each core, and another whenever cores have nothing to do.
 *
 * Tests wait for clocks and for other processes, some for most of their time: what they wait for decides how many of them
 * keep the cores busy. A machine that is slow, or busy with other work, is given fewer: each server of a test gives its
 * database five seconds and each of its agents ten.
 */
import { availableParallelism } from 'node:os'
import { setTimeout } from 'node:timers/promises'
import { watchIdleCores } from './idle-cores.ts'

export interface Crew {
  /** This many run in any case. */
  readonly least: number
  /** More than this do not, however idle the machine is. */
  readonly most: number
  readonly idleCores: () => number
  readonly lookMs: number
}

export type Job = () => Promise<void>

/** From how much of a core with nothing to do another job is started. */
const ENOUGH = 0.4

/** Long enough for a process that has just begun to show what it needs. */
const LOOK_MS = 500

export function usualCrew(): Crew {
  const cores = availableParallelism()
  return { least: cores, most: 3 * cores, idleCores: watchIdleCores(), lookMs: LOOK_MS }
}

/** Rejects with the first job that does. */
export async function runJobs(jobs: readonly Job[], crew: Crew, signal: AbortSignal): Promise<void> {
  const running = new Set<Promise<void>>()
  for (const job of jobs) {
    while (running.size >= crew.least && !signal.aborted) {
      const what = await Promise.race([...running, setTimeout(crew.lookMs, 'looked' as const)])
      if (what === 'looked' && running.size < crew.most && crew.idleCores() >= ENOUGH) break
    }
    if (signal.aborted) break
    const ended = job().finally(() => running.delete(ended))
    running.add(ended)
  }
  await Promise.all(running)
}
