/** This side of the SQLite thread: passes statements to it, pairs the answers, and starts another when it ends. */
import { Worker } from 'node:worker_threads'
import { threadEnv } from '../lib/threads/thread-env.ts'
import { threadFile } from '../lib/threads/thread-file.ts'
import { within } from './limits.ts'
import type { Answer, Asked, Fault, Said, ThreadData } from './sqlite-thread.ts'

/** From the first to the last pause before another thread is started, in milliseconds. */
const RESTART_MS = { first: 100, last: 5000 }

/** How soon a write of another process is seen. */
const POLL_MS = 1000

/** The thread ended, or is being started anew. */
export class ThreadGone extends Error {
  constructor(options?: ErrorOptions) {
    super('the database thread ended; another is being started', options)
    this.name = 'ThreadGone'
  }
}

export interface ThreadOptions {
  readonly path: string
  /** How long opening waits for another process, in milliseconds. */
  readonly openMs: number
}

interface Waiting {
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: Error) => void
}

/** One started thread and what it still owes. */
export interface Thread {
  readonly worker: Worker
  /** In the order asked, which is that of the answers. */
  readonly waiting: Waiting[]
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

  /** Rejects with what SQLite or the file system said, naming the file. */
  static async open(options: ThreadOptions): Promise<SqliteConnection> {
    const connection = new SqliteConnection(options)
    await connection.#start({ makes: true }).catch((error: unknown) => {
      const told = new Error(`cannot open the database file ${options.path}`, { cause: error })
      throw Object.assign(told, codesOf(error))
    })
    return connection
  }

  /** The thread that runs now: a transaction ends with the one that it began on. */
  get thread(): Thread | null {
    return this.#thread
  }

  /** Runs one statement, on `thread` when that still lives. */
  run(sql: string, parameters: readonly unknown[], thread = this.#thread): Promise<Answer> {
    if (!thread?.isOpen || thread !== this.#thread) return Promise.reject(new ThreadGone())
    return new Promise((resolve, reject) => {
      // Only a statement under way keeps the process; an idle thread does not.
      if (thread.waiting.length === 0) thread.worker.ref()
      thread.waiting.push({ resolve, reject })
      post(thread, { type: 'run', sql, parameters })
    })
  }

  /** Calls `heard` when another process wrote, and when something may have been missed. */
  listen(heard: () => void): () => void {
    this.#heard = heard
    if (this.#thread?.isOpen) post(this.#thread, { type: 'listen', pollMs: POLL_MS })
    return () => {
      this.#heard = null
    }
  }

  /** Says that something may have changed without anybody hearing of it. */
  announce(): void {
    this.#heard?.()
  }

  /** Ends a thread whose connection is of no more use; another takes over. */
  abandon(thread: Thread | null): void {
    if (thread?.isOpen) void thread.worker.terminate()
  }

  /** Lets what was asked before finish, closes the database, and resolves when the thread has ended or is overdue. */
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
      // Neither the flags of this process, such as modules to load first, nor its variables: the thread needs none.
      // node:sqlite says at every start that it is experimental, which tells an operator nothing.
      execArgv: ['--disable-warning=ExperimentalWarning'],
      env: threadEnv(),
    })
    const thread: Thread = { worker, waiting: [], isOpen: false }
    this.#thread = thread
    return new Promise((resolve, reject) => {
      let cause: unknown
      worker.on('message', (said: Said) => {
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
      // What ends the thread without an answer, such as a lack of memory. The exit follows.
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

  #hear(thread: Thread, said: Said): void {
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
    // One that never opened at the very start is the caller's business.
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
        // Its end has already planned the next.
        () => {},
      )
    }, pause).unref()
  }
}

function post({ worker }: Thread, asked: Asked): void {
  worker.postMessage(asked)
}

function errorOf(fault: Fault): Error {
  return Object.assign(new Error(fault.message), codesOf(fault))
}

/** The fields by which others sort errors of SQLite and of the file system. */
function codesOf(error: unknown): Partial<Fault> {
  if (typeof error !== 'object' || error === null) return {}
  const { code, errcode, errstr, syscall, path } = error as Partial<Fault>
  return Object.fromEntries(
    Object.entries({ code, errcode, errstr, syscall, path }).filter(([, value]) => value !== undefined),
  )
}
