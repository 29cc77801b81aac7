/** Compiles the patterns and expressions of edges on another thread, since that takes long. */
import { setTimeout as pause } from 'node:timers/promises'
import { compileProgram, type PatternProgram, programBuffers } from '../lib/patterns/pattern-program.ts'
import { ownTurn } from '../lib/threads/others-turn.ts'
import type { Done } from '../lib/threads/serve-thread.ts'
import { type WorkerLane, type WorkerPool, WorkRefused, WorkTooHeavy } from '../lib/threads/worker-pool.ts'
import { type PreparedExpression, preparedBuffers, prepareExpression } from './policy/engine/parsed.ts'

export type EdgeTask =
  | { readonly kind: 'patterns'; readonly patterns: readonly string[] }
  | { readonly kind: 'expressions'; readonly texts: readonly string[] }

/** The one owner of all this work. */
const EDGES = 'edges'

/** How often a list that passed its check may time out. */
const MAX_TRIES = 5
/** Between two tries, in milliseconds. */
const REFUSED_PAUSE_MS = 200

/**
 * Takes one list at a time, whoever wrote it. Refuses nothing: every list was checked when it was written, and an edge whose
 * patterns were refused would let nobody in until its next change.
 */
export class EdgeWork {
  readonly #threads: WorkerPool
  readonly #lane: WorkerLane
  #last: Promise<unknown> = Promise.resolve()

  constructor(threads: WorkerPool) {
    this.#threads = threads
    this.#lane = threads.lane('edge')
  }

  compilePatterns(patterns: readonly string[]): Promise<PatternProgram> {
    return this.#queue({ kind: 'patterns', patterns })
  }

  prepareExpressions(texts: readonly string[]): Promise<readonly PreparedExpression[]> {
    return this.#queue({ kind: 'expressions', texts })
  }

  #queue<T>(task: EdgeTask): Promise<T> {
    const done = this.#last.then(() => this.#retry<T>(task))
    this.#last = done.catch(() => {})
    return done
  }

  /** Tries again after a refusal, and a few times after a timeout, since the work passed its check before. */
  async #retry<T>(task: EdgeTask): Promise<T> {
    for (let tries = 1; ; ) {
      try {
        // In a separate turn: copying it to the thread takes time.
        await ownTurn()
        return (await this.#lane.run(EDGES, task)) as T // the thread answers each kind with its type
      } catch (error) {
        const mayPass =
          error instanceof WorkRefused ? !this.#threads.isClosed : error instanceof WorkTooHeavy && tries++ < MAX_TRIES
        if (!mayPass) throw error
        await pause(REFUSED_PAUSE_MS)
      }
    }
  }
}

/** What the thread does. */
export function doEdgeTask(task: EdgeTask): Done {
  if (task.kind === 'patterns') {
    const program = compileProgram(task.patterns)
    return { result: program, moved: programBuffers(program) }
  }
  const prepared = task.texts.map(prepareExpression)
  return { result: prepared, moved: prepared.flatMap(preparedBuffers) }
}
