/** Runs long work on worker threads that all kinds of work share. */
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

export interface LaneOptions {
  /** How much CPU time one piece may take, in milliseconds. */
  readonly limitMs?: number
}

/** In milliseconds: ample for the work that we accept, short for a waiting caller. */
export const WORK_LIMIT_MS = 3000
/** On a busy machine a thread gets little CPU time: work may last this many times its limit, and no longer. */
const LONGEST_TIMES = 5
/** Threads of one kind of work. An owner uses at most one of them, so that a second owner need not wait for the first. */
const THREADS = 2
/** Pieces of one owner that may wait: deployment tools send several at a time. */
const MAX_WAITING_OF_OWNER = 32
/** Waiting pieces of all owners of a kind: each holds a document of up to 1 MiB. */
const MAX_WAITING = 256
/** How long a thread may take to load the code for a kind of work, in milliseconds. */
const START_LIMIT_MS = 30_000
/** Memory of one thread, in MiB; its code takes about 30. */
const THREAD_MEMORY = { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 32 }

interface Piece {
  readonly owner: string
  readonly work: unknown
  readonly resolve: (result: unknown) => void
  readonly reject: (error: Error) => void
}

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
  lane(kind: string, { limitMs = WORK_LIMIT_MS }: LaneOptions = {}): WorkerLane {
    const lane = new WorkerLane((work) => this.#run(kind, work, limitMs))
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
  /** Waiting pieces by owner; the owner served last comes last. */
  readonly #waiting = new Map<string, Piece[]>()
  #waitingCount = 0
  /** Owners with a piece on a thread. */
  readonly #served = new Set<string>()
  #isClosed = false

  constructor(onThread: (work: unknown) => Promise<unknown>) {
    this.#onThread = onThread
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

  /** Refuses what still waits. */
  close(): void {
    this.#isClosed = true
    for (const queue of this.#waiting.values()) for (const { reject } of queue) reject(new WorkRefused())
    this.#waiting.clear()
  }

  #serveNext(): void {
    while (this.#served.size < THREADS && !this.#isClosed) {
      const piece = this.#take()
      if (!piece) return
      void this.#serve(piece)
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

  async #serve({ owner, work, resolve, reject }: Piece): Promise<void> {
    this.#served.add(owner)
    try {
      resolve(await this.#onThread(work))
    } catch (error) {
      reject(error instanceof Error ? error : new Error(String(error)))
    }
    this.#served.delete(owner)
    this.#serveNext()
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
