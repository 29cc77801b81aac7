/** The steps of an upgrade, from the generation that serves to one that was started beside it. */
import type { Logger } from '../../lib/log/create-log.ts'
import type { GenerationReport, ProcessSet } from './process-set.ts'

export type UpgradeStep = 'starting' | 'control' | 'workers' | 'back'

interface Upgrading {
  readonly from: ProcessSet
  readonly to: ProcessSet
  readonly log: Logger
  /** Called when a step begins. */
  readonly onStep: (step: UpgradeStep) => void
  /** Whether the server is stopping; then nothing is rolled back. */
  readonly isStopping: () => boolean
}

/** An upgrade failed, and the message says why; the former processes go on. */
export class UpgradeFailure extends Error {
  override readonly name = 'UpgradeFailure'
}

/**
 * Resolves when `to` serves; the caller then ends `from`. Rejects with `UpgradeFailure` after `to` has ended. Until the new
 * workers are ready, the upgrade can be rolled back.
 */
export async function upgrade({ from, to, log, onStep, isStopping }: Upgrading): Promise<GenerationReport> {
  let isPaused = false
  try {
    onStep('starting')
    check(isStopping)
    await to.load()
    check(isStopping)
    onStep('control')
    // Only one control process may have the store open, so the old one closes it and waits with its code in memory. Callers
    // of the API wait in the queue of their socket meanwhile.
    isPaused = true
    await from.pauseControl()
    check(isStopping)
    onStep('workers')
    const report = await to.serve()
    check(isStopping)
    return report
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    // A stop ends all processes in its own order.
    if (isStopping()) throw new UpgradeFailure('the server is stopping', { cause: error })
    onStep('back')
    await to.kill()
    const isBack = !isPaused || (await from.resumeControl())
    // Takes back the sockets that the new workers served meanwhile.
    from.lend()
    if (isBack) throw new UpgradeFailure(reason, { cause: error })
    log.error('control process cannot resume after a failed upgrade; starting a replacement')
    throw new UpgradeFailure(`${reason}; the control process could not resume and is being replaced`, { cause: error })
  }
}

function check(isStopping: () => boolean): void {
  if (isStopping()) throw new UpgradeFailure('the server is stopping')
}
