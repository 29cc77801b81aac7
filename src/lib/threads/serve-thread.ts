/** The thread's side of `worker-pool.ts`: receives work, runs it, and sends back the result. */
import { parentPort, type Transferable } from 'node:worker_threads'
import type { PoolMessage, Said } from './worker-pool.ts'

/** The result of a piece of work, and the memory that is transferred with it instead of being copied. */
export interface Done {
  readonly result: unknown
  readonly moved?: readonly ArrayBuffer[]
}

type Run = (work: unknown) => Done | Promise<Done>

/**
 * Runs every piece that the thread receives. The code of each kind is loaded before its first piece.
 *
 * @example
 * serveThread({
 *   key: async () => {
 *     const { makeSshKeyPair } = await import('./ssh-key-pair.ts')
 *     return (choice) => ({ result: makeSshKeyPair(choice as SshKeyChoice) })
 *   },
 * })
 */
export function serveThread(kinds: Readonly<Record<string, () => Promise<Run>>>): void {
  const loaded = new Map<string, Run>()
  const done = async (threadMessage: PoolMessage): Promise<Done> => {
    if ('work' in threadMessage)
      return loaded.get(threadMessage.kind)?.(threadMessage.work) ?? unknown(threadMessage.kind)
    loaded.set(threadMessage.load, (await kinds[threadMessage.load]?.()) ?? unknown(threadMessage.load))
    return { result: undefined }
  }
  const say = (said: Said, moved: readonly ArrayBuffer[] = []): void => {
    parentPort?.postMessage(said, moved as readonly Transferable[])
  }
  const failed = (error: unknown): void =>
    say({ fault: error instanceof Error ? (error.stack ?? error.message) : String(error) })
  parentPort?.on('message', (threadMessage: PoolMessage) => {
    done(threadMessage)
      .then(({ result, moved }) => say({ result }, moved))
      .catch(failed)
  })
}

function unknown(kind: string): never {
  throw new Error(`this thread does no work of kind ${kind}`)
}
