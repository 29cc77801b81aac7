/** Runs a bench on stages, and ends all that it started there on every way out. */
import { Stages } from './stage/stage.ts'

/** What a shell expects of a program that a signal ended. */
const INTERRUPTED = 130

export async function withStages(work: (stages: Stages) => Promise<void>): Promise<void> {
  if (process.platform !== 'linux')
    throw new Error('this bench reads CPU and memory from /proc, so it runs on Linux only')
  const stages = new Stages()
  let isInterrupted = false
  // A signal ends it in good order, a second one and an error at once.
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
    // Whatever failed because all was being closed is of no interest.
    if (!isInterrupted) throw error
  }
}
