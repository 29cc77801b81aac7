/**
 * The steps of an upgrade, from the generation that serves to one that was started beside it.
 *
 * Only one control process may have the store open, so the old one closes it and waits with its code in memory; callers of
 * the API wait in the queue of their socket meanwhile. Until the new workers are ready everything can be taken back.
 */
import type { Logger } from '../lib/log/log.ts'
import type { Generation, GenerationReport } from './generation.ts'

export type UpgradeStep = 'starting' | 'control' | 'workers' | 'back'

export interface Upgrading {
  readonly from: Generation
  readonly to: Generation
  readonly log: Logger
  /** Told when a step begins. */
  readonly onStep: (step: UpgradeStep) => void
  /** Whether the server stops: then nothing is taken back. */
  readonly isStopping: () => boolean
}

/** An upgrade did not happen, and why; what ran goes on. */
export class UpgradeFailure extends Error {
  override readonly name = 'UpgradeFailure'
}

/** Resolves when `to` serves; `from` is to be ended then. Rejects with `UpgradeFailure`, and then `to` has ended. */
export async function upgrade({ from, to, log, onStep, isStopping }: Upgrading): Promise<GenerationReport> {
  let isPaused = false
  try {
    onStep('starting')
    check(isStopping)
    await to.load()
    check(isStopping)
    onStep('control')
    isPaused = true
    await from.pauseControl()
    check(isStopping)
    onStep('workers')
    const report = await to.serve()
    check(isStopping)
    return report
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    // A stop ends all processes, in its order.
    if (isStopping()) throw new UpgradeFailure('the server stops', { cause: error })
    onStep('back')
    await to.kill()
    const isBack = !isPaused || (await from.resumeControl())
    // What the new ones served meanwhile.
    from.lend()
    if (isBack) throw new UpgradeFailure(reason, { cause: error })
    log.error('the control process cannot go on after the upgrade failed; another takes its place')
    throw new UpgradeFailure(`${reason}; and the control process has to be started again`, { cause: error })
  }
}

function check(isStopping: () => boolean): void {
  if (isStopping()) throw new UpgradeFailure('the server stops')
}
