/**
 * Questions to the database, many at a time: those that come while one is under way wait for the next query, which
 * answers them all, and which begins a moment after the one before. Thousands of agents that come back at once cost a few
 * queries of each kind, and one alone waits for nobody. No answer is older than its question.
 */
import { ENOUGH, gatherMs } from './gather-time.ts'

/** How many one query answers. */
const MAX_TOGETHER = 500

/** How long others wait for a query that is under way, in milliseconds: a database that says nothing holds it for long. */
const PATIENCE_MS = 100

interface Asked<Key, Answer> {
  readonly key: Key
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: unknown) => void
}

export class AskedTogether<Key, Answer> {
  readonly #answer: (keys: readonly Key[]) => Promise<(key: Key) => Answer>
  readonly #apartMs: (together: number) => number
  #waiting: Asked<Key, Answer>[] = []
  /** The query that others wait for, or the time after it. */
  #current: object | undefined

  /**
   * `answer` asks the database about several keys, and gives what to answer for each. `apartMs` is the least time between two
   * queries after one that answered so many, in milliseconds; who asks alone is answered at once.
   */
  constructor(
    answer: (keys: readonly Key[]) => Promise<(key: Key) => Answer>,
    { apartMs = gatherMs }: { readonly apartMs?: (together: number) => number } = {},
  ) {
    this.#answer = answer
    this.#apartMs = apartMs
  }

  ask(key: Key): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    this.#waiting.push({ key, resolve, reject })
    if (!this.#current) this.#begin()
    return promise
  }

  #begin(): void {
    const query = {}
    const begunAt = performance.now()
    const asked = this.#waiting.splice(0, MAX_TOGETHER)
    this.#current = query
    const next = (): void => {
      this.#current = undefined
      if (this.#waiting.length > 0) this.#begin()
    }
    const goOn = (): void => {
      clearTimeout(patience)
      if (this.#current !== query) return
      // In a crowd more come within a moment, even when nobody waits just now.
      const isAlone = asked.length === 1 && this.#waiting.length === 0
      const isWorthIt = isAlone || this.#waiting.length >= ENOUGH
      const earlyMs = isWorthIt ? 0 : begunAt + this.#apartMs(asked.length) - performance.now()
      // Those who come meanwhile go along.
      this.#current = {}
      if (earlyMs > 0) setTimeout(next, earlyMs).unref()
      else next()
    }
    const patience = setTimeout(goOn, PATIENCE_MS).unref()
    void this.#answerAll(asked).then(goOn)
  }

  async #answerAll(asked: readonly Asked<Key, Answer>[]): Promise<void> {
    try {
      const answerOf = await this.#answer(asked.map(({ key }) => key))
      for (const { key, resolve } of asked) resolve(answerOf(key))
    } catch (error) {
      for (const { reject } of asked) reject(error)
    }
  }
}
