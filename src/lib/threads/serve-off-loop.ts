/** The thread's side of `worker-pool.ts`: receives work, runs it, and sends back the result. */
import { parentPort, type Transferable } from 'node:worker_threads'
import type { Said } from './worker-pool.ts'

/** The result of a piece of work, and the memory that is transferred with it instead of being copied. */
export interface Done {
  readonly result: unknown
  readonly moved?: readonly ArrayBuffer[]
}

/** Runs `work` on every piece that the thread receives. */
export function serveOffLoop(work: (given: unknown) => Done | Promise<Done>): void {
  const say = (said: Said, moved: readonly ArrayBuffer[] = []): void => {
    parentPort?.postMessage(said, moved as readonly Transferable[])
  }
  const succeeded = ({ result, moved }: Done): void => say({ result }, moved)
  const failed = (error: unknown): void =>
    say({ fault: error instanceof Error ? (error.stack ?? error.message) : String(error) })
  parentPort?.on('message', (given: unknown) => {
    try {
      const done = work(given)
      if (done instanceof Promise) done.then(succeeded).catch(failed)
      else succeeded(done)
    } catch (error) {
      failed(error)
    }
  })
  say({ isReady: true })
}
