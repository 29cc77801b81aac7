/** The other side of `off-loop.ts`: what runs on a thread takes its work with this. */
import { parentPort, type Transferable } from 'node:worker_threads'
import type { Said } from './off-loop.ts'

/** What a piece of work came to, and the memory that moves along with it instead of being copied. */
export interface Done {
  readonly result: unknown
  readonly moved?: readonly ArrayBuffer[]
}

/** Does every piece of work that comes with `work`. */
export function serveOffLoop(work: (given: unknown) => Done | Promise<Done>): void {
  const say = (said: Said, moved: readonly ArrayBuffer[] = []): void => {
    parentPort?.postMessage(said, moved as readonly Transferable[])
  }
  const told = ({ result, moved }: Done): void => say({ result }, moved)
  const failed = (error: unknown): void =>
    say({ fault: error instanceof Error ? (error.stack ?? error.message) : String(error) })
  parentPort?.on('message', (given: unknown) => {
    try {
      const done = work(given)
      if (done instanceof Promise) done.then(told).catch(failed)
      else told(done)
    } catch (error) {
      failed(error)
    }
  })
  say({ isReady: true })
}
