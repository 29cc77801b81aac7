/** Runs long work on worker threads that all kinds of work share. */
import { Worker } from 'node:worker_threads'
import { SharedTurns } from '../limits/shared-turns.ts'
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

export interface LaneOptions {
  /** How much CPU time one piece may take, in milliseconds. */
  readonly limitMs?: number
  /** How many pieces may wait. */
  readonly waiting?: number
}

/** In milliseconds: ample for the work that we accept, short for a waiting caller. */
export const WORK_LIMIT_MS = 3000
/** On a busy machine a thread gets little CPU time: work may last this many times its limit, and no longer. */
const LONGEST_TIMES = 5
/** Waiting pieces of all owners of a kind: each holds a document of up to 1 MiB. */
const MAX_WAITING = 256
/** How long a piece waits for its turn, in milliseconds: by then whoever sent it has gone. */
const WAIT_MS = 5 * 60_000
/** Threads of one kind of work. An owner uses at most one of them, so that a second owner need not wait for the first. */
const THREADS = 2
/** How long a thread may take to load the code for a kind of work, in milliseconds. */
const START_LIMIT_MS = 30_000
/** Memory of one thread, in MiB; its code takes about 30. */
const THREAD_MEMORY = { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 32 }

/**
 * Each kind of work has a lane of its own: one piece at a time for each owner, within limits of time and memory, and without
 * waiting for other kinds.
 */
export class WorkerPool {
  readonly #entry: URL
  readonly #idle: Thread[] = []
  readonly #busy = new Set<Thread>()
  readonly #lanes: WorkerLane[] = []
  #isClosed = false

  /** `entry` is the module that each thread runs; see `serveThread`. */
  constructor(entry: URL) {
    this.#entry = entry
  }

  /** Running threads; none before the first work. */
  get threads(): number {
    return this.#idle.length + this.#busy.size
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Takes work of one kind, which is in the table of the entry. */
  lane(kind: string, { limitMs = WORK_LIMIT_MS, waiting = MAX_WAITING }: LaneOptions = {}): WorkerLane {
    const lane = new WorkerLane((work) => this.#run(kind, work, limitMs), waiting)
    this.#lanes.push(lane)
    return lane
  }

  /** Ends the threads; work that still waits is refused. */
  async close(): Promise<void> {
    this.#isClosed = true
    for (const lane of this.#lanes) lane.close()
    await Promise.all([...this.#idle, ...this.#busy].map((thread) => thread.end()))
  }

  async #run(kind: string, work: unknown, limitMs: number): Promise<unknown> {
    const known = this.#idle.findLastIndex((each) => each.knows(kind))
    // At -1, where none has loaded the code of this kind, the last is taken.
    const thread = this.#idle.splice(known, 1)[0] ?? new Thread(this.#entry)
    this.#busy.add(thread)
    try {
      return await thread.run(kind, work, limitMs)
    } finally {
      this.#busy.delete(thread)
      if (!thread.isEnded) this.#idle.push(thread)
    }
  }
}

/** The work of one kind. */
export class WorkerLane {
  readonly #onThread: (work: unknown) => Promise<unknown>
  readonly #turns: SharedTurns
  #isClosed = false

  constructor(onThread: (work: unknown) => Promise<unknown>, waiting: number) {
    this.#onThread = onThread
    this.#turns = new SharedTurns({ atOnce: THREADS, each: 1, waiting, waitMs: WAIT_MS })
  }

  /**
   * Resolves with the result of `work`; rejects with `WorkTooHeavy`, `WorkRefused`, or an error of the thread. Work of an owner is
   * shared by source.
   */
  async run(owner: string, work: unknown, source?: string): Promise<unknown> {
    const turn = this.#isClosed ? Promise.resolve(false) : this.#turns.take(owner, source)
    if (turn !== true && !(await turn)) throw new WorkRefused()
    try {
      if (this.#isClosed) throw new WorkRefused()
      return await this.#onThread(work)
    } finally {
      this.#turns.over(owner)
    }
  }

  /** Refuses what still waits, once the work under way has ended. */
  close(): void {
    this.#isClosed = true
  }
}

/** A message to a thread: a kind of work whose code it must load, or a piece of work of that kind. */
export type PoolMessage = { readonly load: string } | { readonly kind: string; readonly work: unknown }

/** A message from a thread. */
export type Said = { readonly result: unknown } | { readonly fault: string }

/** One thread; it does not keep the process alive. */
class Thread {
  readonly #worker: Worker
  #settle: ((said: Said | Error) => void) | undefined
  /** The kinds of work whose code it has loaded. */
  readonly #loaded = new Set<string>()
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

  knows(kind: string): boolean {
    return this.#loaded.has(kind)
  }

  async run(kind: string, work: unknown, limitMs: number): Promise<unknown> {
    // The time limit of the work begins once the thread has loaded its code.
    if (!this.knows(kind)) await this.#ask({ load: kind }, this.#nextMessage(START_LIMIT_MS))
    this.#loaded.add(kind)
    return this.#ask({ kind, work }, this.#nextMessage(limitMs, this.#measureCpu()))
  }

  async #ask(message: PoolMessage, answer: Promise<Said>): Promise<unknown> {
    this.#worker.postMessage(message)
    const said = await answer
    if ('fault' in said) throw new Error(`a thread failed: ${said.fault}`)
    return said.result
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
