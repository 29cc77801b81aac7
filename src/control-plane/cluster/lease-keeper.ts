/** Keeps the lease of this node running while its process is busy, from a thread: a list or a page of rows delays it no longer. */
import { Worker } from 'node:worker_threads'
import type { Logger } from '../../lib/log/create-log.ts'
import { threadEnv } from '../../lib/threads/thread-env.ts'
import { threadFile } from '../../lib/threads/thread-file.ts'
import type { LeaseThreadData } from './lease-thread.ts'
import { LEASE_MS, RENEW_MS } from './node-lease.ts'

interface LeaseKeeperOptions {
  readonly databaseUrl: string
  readonly nodeId: string
  readonly log: Logger
}

/** How long this process may be busy without a pause before its lease is lost after all, in milliseconds: it may have hung. */
const HUNG_MS = 60_000

/** Memory of the thread, in MiB; the driver of the database takes about ten. */
const THREAD_MEMORY = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 8 }

/**
 * The thread ends with this process, and stands still with it. It only prolongs a lease that runs; this process takes a lease,
 * and finds out what it lost.
 */
export class LeaseKeeper {
  readonly #options: LeaseKeeperOptions
  readonly #timer: NodeJS.Timeout
  #thread: Worker | undefined

  constructor(options: LeaseKeeperOptions) {
    this.#options = options
    this.#thread = this.#start()
    this.#timer = setInterval(() => {
      this.#thread ??= this.#start()
      this.#thread.postMessage('alive')
    }, RENEW_MS).unref()
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#thread?.terminate()
  }

  #start(): Worker {
    const { databaseUrl: url, nodeId, log } = this.#options
    const data: LeaseThreadData = { url, nodeId, leaseMs: LEASE_MS, everyMs: RENEW_MS, patienceMs: HUNG_MS }
    const thread = new Worker(threadFile('lease-thread', import.meta.url), {
      ...{ name: 'lease', workerData: data, execArgv: [], env: threadEnv(), resourceLimits: THREAD_MEMORY },
    })
    thread.unref()
    thread.on('error', (err) =>
      log.warn({ err }, 'the thread that keeps the lease of this node failed; starting another'),
    )
    thread.once('exit', () => {
      if (this.#thread === thread) this.#thread = undefined
    })
    return thread
  }
}
