/** The other side of `off-loop.ts`: what runs on a thread takes its work with this. */
import { parentPort, type Transferable } from 'node:worker_threads'
import type { Said } from './off-loop.ts'

/** What a piece of work came to, and the memory that moves along with it instead of being copied. */
export interface Done {
  readonly result: unknown
  readonly moved?: readonly ArrayBuffer[]
}

/** Does every piece of work that comes with `work`. */
export function serveOffLoop(work: (given: unknown) => Done): void {
  const say = (said: Said, moved: readonly ArrayBuffer[] = []): void => {
    parentPort?.postMessage(said, moved as readonly Transferable[])
  }
  parentPort?.on('message', (given: unknown) => {
    try {
      const { result, moved } = work(given)
      say({ result }, moved)
    } catch (error) {
      say({ fault: error instanceof Error ? (error.stack ?? error.message) : String(error) })
    }
  })
  say({ isReady: true })
}
