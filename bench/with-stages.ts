/** Runs a bench on stages, and ends everything that it started, however it finishes. */
import { Stages } from './stage/stage.ts'

/** The exit code that a shell expects of an interrupted program. */
const INTERRUPTED = 130

export async function withStages(work: (stages: Stages) => Promise<void>): Promise<void> {
  if (process.platform !== 'linux')
    throw new Error('this bench reads CPU and memory from /proc, so it runs on Linux only')
  const stages = new Stages()
  let isInterrupted = false
  // The first signal ends the bench in order; a second one, or an error, ends it at once.
  process.on('exit', () => stages.dropAll())
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (stages.isOver) process.exit(INTERRUPTED)
      isInterrupted = true
      void stages.closeAll().finally(() => process.exit(INTERRUPTED))
    })
  }
  try {
    await work(stages)
  } catch (error) {
    // Failures while everything is being closed do not matter.
    if (!isInterrupted) throw error
  }
}
