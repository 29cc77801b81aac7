/** The main thread's side of the SQLite thread: sends it statements, matches the answers, and restarts it when it ends. */
import { Worker } from 'node:worker_threads'
import { threadEnv } from '../../lib/threads/thread-env.ts'
import { threadFile } from '../../lib/threads/thread-file.ts'
import { within } from './limits.ts'
import type { ThreadAnswer, ThreadData, ThreadFault, ThreadMessage, ThreadRequest } from './sqlite-thread.ts'

/** The shortest and the longest pause before the thread is restarted, in milliseconds. */
const RESTART_MS = { first: 100, last: 5000 }

/** How often to look for writes of other processes, in milliseconds. */
const POLL_MS = 1000

/** The thread has ended and is being restarted. */
export class ThreadGone extends Error {
  constructor(options?: ErrorOptions) {
    super('the database thread ended; another is being started', options)
    this.name = 'ThreadGone'
  }
}

type ThreadOptions = Omit<ThreadData, 'makes'>

/** One started thread, with the statements it has not answered yet. */
export interface Thread {
  readonly worker: Worker
  /** In the order of the statements, which is also that of the answers. */
  readonly waiting: PromiseWithResolvers<ThreadAnswer>[]
  isOpen: boolean
}

export class SqliteConnection {
  readonly #options: ThreadOptions
  #thread: Thread | null = null
  #failures = 0
  #restart: NodeJS.Timeout | undefined
  #isClosing = false
  #heard: (() => void) | null = null

  private constructor(options: ThreadOptions) {
    this.#options = options
  }

  /** Rejects with an error that names the file and has the error of SQLite or the file system as its cause. */
  static async open(options: ThreadOptions): Promise<SqliteConnection> {
    const connection = new SqliteConnection(options)
    await connection.#start({ makes: true }).catch((error: unknown) => {
      const fault = new Error(`cannot open the database file ${options.path}`, { cause: error })
      throw Object.assign(fault, codesOf(error))
    })
    return connection
  }

  /** The running thread. A transaction stays on the thread that it began on, and fails with it. */
  get thread(): Thread | null {
    return this.#thread
  }

  /** Runs one statement on `thread`; rejects when that thread is gone. */
  run(sql: string, parameters: readonly unknown[], thread = this.#thread): Promise<ThreadAnswer> {
    if (!thread?.isOpen || thread !== this.#thread) return Promise.reject(new ThreadGone())
    const waiting = Promise.withResolvers<ThreadAnswer>()
    // Only a running statement keeps the process alive; an idle thread does not.
    if (thread.waiting.length === 0) thread.worker.ref()
    thread.waiting.push(waiting)
    post(thread, { type: 'run', sql, parameters })
    return waiting.promise
  }

  /** Calls `heard` when another process has written, and when a change may have been missed. */
  listen(heard: () => void): () => void {
    this.#heard = heard
    if (this.#thread?.isOpen) post(this.#thread, { type: 'listen', pollMs: POLL_MS })
    return () => {
      this.#heard = null
    }
  }

  /** Reports that something may have changed unnoticed. */
  announce(): void {
    this.#heard?.()
  }

  /** Ends a thread whose connection is no longer usable; it is restarted. */
  abandon(thread: Thread | null): void {
    if (thread?.isOpen) void thread.worker.terminate()
  }

  /** Lets earlier statements finish, closes the database, and resolves when the thread has ended or `limitMs` are over. */
  async close(limitMs: number): Promise<void> {
    this.#isClosing = true
    clearTimeout(this.#restart)
    const thread = this.#thread
    if (!thread) return
    const ended = new Promise((resolve) => thread.worker.once('exit', resolve))
    thread.worker.ref()
    post(thread, { type: 'close' })
    await within(limitMs, 'closing the database', ended).catch(() => thread.worker.unref())
  }

  #start({ makes }: { makes: boolean }): Promise<void> {
    const data: ThreadData = { ...this.#options, makes }
    const worker = new Worker(threadFile('sqlite-thread', import.meta.url), {
      name: 'sqlite',
      workerData: data,
      // The thread gets neither the flags of this process, such as modules to preload, nor its environment variables.
      // The one flag silences the warning of node:sqlite that it is experimental, which does not help an operator.
      execArgv: ['--disable-warning=ExperimentalWarning'],
      env: threadEnv(),
    })
    const thread: Thread = { worker, waiting: [], isOpen: false }
    this.#thread = thread
    return new Promise((resolve, reject) => {
      let cause: unknown
      worker.on('message', (said: ThreadMessage) => {
        if (thread.isOpen) {
          this.#hear(thread, said)
        } else if (said.type === 'fault') {
          cause = errorOf(said.fault)
        } else {
          thread.isOpen = true
          worker.unref()
          resolve()
        }
      })
      // An error that ends the thread without an answer, such as a lack of memory; `exit` follows.
      worker.on('error', (error) => {
        cause = error
      })
      worker.once('exit', () => {
        const gone = new ThreadGone(cause === undefined ? undefined : { cause })
        this.#ended(thread, gone)
        reject(cause ?? gone)
      })
    })
  }

  #hear(thread: Thread, said: ThreadMessage): void {
    if (said.type === 'changed') {
      this.announce()
      return
    }
    const first = thread.waiting.shift()
    if (thread.waiting.length === 0 && !this.#isClosing) thread.worker.unref()
    if (said.type === 'answer') first?.resolve(said.answer)
    else if (said.type === 'fault') first?.reject(errorOf(said.fault))
  }

  #ended(thread: Thread, gone: ThreadGone): void {
    const wasOpen = thread.isOpen
    thread.isOpen = false
    this.#thread = null
    for (const { reject } of thread.waiting.splice(0)) reject(gone)
    // When the very first thread does not open, `open` rejects, and there is nothing to restart.
    if (this.#isClosing || (!wasOpen && this.#failures === 0)) return
    this.#startAgain()
  }

  #startAgain(): void {
    const { first, last } = RESTART_MS
    const pause = Math.min(first * 2 ** this.#failures, last)
    this.#failures++
    this.#restart = setTimeout(() => {
      this.#start({ makes: false }).then(
        () => {
          this.#failures = 0
          if (!this.#heard) return
          this.listen(this.#heard)
          this.announce()
        },
        // `#ended` has already scheduled the next try.
        () => {},
      )
    }, pause).unref()
  }
}

function post({ worker }: Thread, asked: ThreadRequest): void {
  worker.postMessage(asked)
}

function errorOf(fault: ThreadFault): Error {
  return Object.assign(new Error(fault.message), codesOf(fault))
}

/** The fields by which errors of SQLite and of the file system are classified. */
function codesOf(error: unknown): Partial<ThreadFault> {
  if (typeof error !== 'object' || error === null) return {}
  const { code, errcode, errstr, syscall, path } = error as Partial<ThreadFault>
  return Object.fromEntries(
    Object.entries({ code, errcode, errstr, syscall, path }).filter(([, value]) => value !== undefined),
  )
}
