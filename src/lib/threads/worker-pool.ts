/** Runs long work on worker threads: one piece at a time for each owner, within limits of time and memory. */
import { Worker } from 'node:worker_threads'
import { threadEnv } from './thread-env.ts'

/** The work exceeded its limit of time or memory, and its thread was ended. */
export class WorkTooHeavy extends Error {
  readonly limit: 'time' | 'memory'

  constructor(limit: 'time' | 'memory') {
    super(`the work needs more ${limit} than it is given`)
    this.name = 'WorkTooHeavy'
    this.limit = limit
  }
}

/** Too much work of this owner, or of all owners together, is waiting already. */
export class WorkRefused extends Error {
  constructor() {
    super('too much work waits already')
    this.name = 'WorkRefused'
  }
}

export interface OffLoopOptions {
  /** The module that a thread runs; see `serveOffLoop`. */
  readonly entry: URL
  /** How much CPU time one piece may take, in milliseconds. */
  readonly limitMs?: number
}

/** In milliseconds: ample for the work that we accept, short for a waiting caller. */
export const WORK_LIMIT_MS = 3000
/** On a busy machine a thread gets little CPU time: work may last this many times its limit, and no longer. */
const LONGEST_TIMES = 5
/** An owner uses at most one thread at a time, so that a second owner need not wait for the first. */
const THREADS = 2
/** Pieces of one owner that may wait: deployment tools send several at a time. */
const MAX_WAITING_OF_OWNER = 32
/** Waiting pieces of all owners: each holds a document of up to 1 MiB. */
const MAX_WAITING = 256
/** How long a thread may take to load its code, in milliseconds. */
const START_LIMIT_MS = 30_000
/** Memory of one thread, in MiB; its code takes about 30. */
const THREAD_MEMORY = { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 32 }

interface Piece {
  readonly owner: string
  readonly work: unknown
  readonly resolve: (result: unknown) => void
  readonly reject: (error: Error) => void
}

export class OffLoop {
  readonly #entry: URL
  readonly #limitMs: number
  /** Waiting pieces by owner; the owner served last comes last. */
  readonly #waiting = new Map<string, Piece[]>()
  #waitingCount = 0
  /** Owners with a piece on a thread. */
  readonly #served = new Set<string>()
  readonly #idle: Thread[] = []
  readonly #busy = new Set<Thread>()
  #isClosed = false

  constructor({ entry, limitMs = WORK_LIMIT_MS }: OffLoopOptions) {
    this.#entry = entry
    this.#limitMs = limitMs
  }

  /** Running threads; none before the first work. */
  get threads(): number {
    return this.#idle.length + this.#busy.size
  }

  /** Resolves with the result of `work`; rejects with `WorkTooHeavy`, `WorkRefused`, or an error of the thread. */
  run(owner: string, work: unknown): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const queue = this.#waiting.get(owner) ?? []
      const isFull = queue.length >= MAX_WAITING_OF_OWNER || this.#waitingCount >= MAX_WAITING
      if (isFull || this.#isClosed) return reject(new WorkRefused())
      queue.push({ owner, work, resolve, reject })
      this.#waiting.set(owner, queue)
      this.#waitingCount++
      this.#serveNext()
    })
  }

  /** Ends the threads; work that still waits is refused. */
  async close(): Promise<void> {
    this.#isClosed = true
    for (const queue of this.#waiting.values()) for (const { reject } of queue) reject(new WorkRefused())
    this.#waiting.clear()
    await Promise.all([...this.#idle, ...this.#busy].map((thread) => thread.end()))
  }

  #serveNext(): void {
    while (this.#busy.size < THREADS && !this.#isClosed) {
      const piece = this.#take()
      if (!piece) return
      void this.#serve(piece, this.#idle.pop() ?? new Thread(this.#entry))
    }
  }

  /** The next piece of the owner whose turn it is. */
  #take(): Piece | undefined {
    for (const [owner, queue] of this.#waiting) {
      if (this.#served.has(owner)) continue
      const piece = queue.shift()
      this.#waiting.delete(owner)
      if (queue.length > 0) this.#waiting.set(owner, queue)
      this.#waitingCount--
      return piece
    }
    return undefined
  }

  async #serve({ owner, work, resolve, reject }: Piece, thread: Thread): Promise<void> {
    this.#busy.add(thread)
    this.#served.add(owner)
    try {
      resolve(await thread.run(work, this.#limitMs))
    } catch (error) {
      reject(error instanceof Error ? error : new Error(String(error)))
    }
    this.#busy.delete(thread)
    this.#served.delete(owner)
    if (!thread.isEnded) this.#idle.push(thread)
    this.#serveNext()
  }
}

/** A message from a thread. */
export type Said = { readonly isReady: true } | { readonly result: unknown } | { readonly fault: string }

/** One thread; it does not keep the process alive. */
class Thread {
  readonly #worker: Worker
  #settle: ((said: Said | Error) => void) | undefined
  #isReady = false
  isEnded = false

  constructor(entry: URL) {
    this.#worker = new Worker(entry, { name: 'off-loop', env: threadEnv(), resourceLimits: THREAD_MEMORY })
    this.#worker.unref()
    this.#worker.on('message', (said: Said) => this.#settle?.(said))
    this.#worker.on('error', (error: Error & { code?: string }) => {
      this.isEnded = true
      this.#settle?.(error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? new WorkTooHeavy('memory') : error)
    })
    this.#worker.on('exit', () => {
      this.isEnded = true
      this.#settle?.(new Error('the thread ended'))
    })
  }

  async run(work: unknown, limitMs: number): Promise<unknown> {
    // The time limit of the work begins once the thread has loaded its code.
    if (!this.#isReady) await this.#nextMessage(START_LIMIT_MS)
    this.#isReady = true
    const answer = this.#nextMessage(limitMs, this.#measureCpu())
    this.#worker.postMessage(work)
    const said = await answer
    if ('fault' in said) throw new Error(`a thread failed: ${said.fault}`)
    return 'result' in said ? said.result : undefined
  }

  async end(): Promise<void> {
    this.isEnded = true
    await this.#worker.terminate()
  }

  /** Returns a function that resolves with the CPU time that the thread has used from now on, in milliseconds. */
  #measureCpu(): () => Promise<number> {
    const before = this.#worker.cpuUsage()
    // Rejects when the thread has ended; a later call reports that.
    before.catch(() => {})
    return async () => {
      const { user, system } = await this.#worker.cpuUsage(await before)
      return (user + system) / 1000
    }
  }

  /** The next message from the thread; ends the thread when it takes too long, by `spent` or else by the clock. */
  #nextMessage(limitMs: number, spent?: () => Promise<number>): Promise<Said> {
    return new Promise((resolve, reject) => {
      const begunAt = performance.now()
      let timer: NodeJS.Timeout | undefined
      const wait = (ms: number): void => {
        timer = setTimeout(() => void check(), ms).unref()
      }
      const giveUp = (): void => {
        if (this.#settle !== settle) return
        void this.end()
        settle(new WorkTooHeavy('time'))
      }
      const check = async (): Promise<void> => {
        const isLong = performance.now() - begunAt >= LONGEST_TIMES * limitMs
        if (isLong || !spent) return giveUp()
        // A blocked thread does not answer.
        const silence = setTimeout(giveUp, limitMs).unref()
        const ms = await spent().catch(() => limitMs)
        clearTimeout(silence)
        if (this.#settle !== settle) return
        if (ms >= limitMs) giveUp()
        else wait(limitMs - ms)
      }
      const settle = (said: Said | Error): void => {
        this.#settle = undefined
        clearTimeout(timer)
        if (said instanceof Error) reject(said)
        else resolve(said)
      }
      this.#settle = settle
      wait(limitMs)
    })
  }
}
