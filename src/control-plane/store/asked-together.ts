/** Batches questions to the database. */
import { ENOUGH, gatherMs } from './gather-time.ts'

/** Most questions that one query answers. */
const MAX_TOGETHER = 500

/** How long later questions wait for a query under way, in milliseconds: a silent database may never answer it. */
const PATIENCE_MS = 100

interface Asked<Key, Answer> extends PromiseWithResolvers<Answer> {
  readonly key: Key
}

/**
 * Questions that come during a query wait for the next one, which answers them all and begins a moment after the one before.
 * So thousands of agents that come back at once cost a few queries of each kind, and a lone question does not wait. No
 * answer is older than its question.
 */
export class AskedTogether<Key, Answer> {
  readonly #answer: (keys: readonly Key[]) => Promise<(key: Key) => Answer>
  readonly #apartMs: (together: number) => number
  #waiting: Asked<Key, Answer>[] = []
  /** The query that others wait for, or the time after it. */
  #current: object | undefined

  /**
   * `answer` asks the database about several keys, and returns a function with the answer for each. `apartMs` is the least time
   * between two queries, in milliseconds, given how many questions the first answered; a lone question does not wait.
   */
  constructor(
    answer: (keys: readonly Key[]) => Promise<(key: Key) => Answer>,
    { apartMs = gatherMs }: { readonly apartMs?: (together: number) => number } = {},
  ) {
    this.#answer = answer
    this.#apartMs = apartMs
  }

  ask(key: Key): Promise<Answer> {
    const asked = { key, ...Promise.withResolvers<Answer>() }
    this.#waiting.push(asked)
    if (!this.#current) this.#begin()
    return asked.promise
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
      // In a crowd, more questions come within moments even when none waits right now.
      const isAlone = asked.length === 1 && this.#waiting.length === 0
      const isWorthIt = isAlone || this.#waiting.length >= ENOUGH
      const earlyMs = isWorthIt ? 0 : begunAt + this.#apartMs(asked.length) - performance.now()
      // Questions that come during the pause join the next query.
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
