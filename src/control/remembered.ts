/**
 * Answers of the database, for when it is away: agents that were here a moment ago are let in again by what was true then.
 * What has changed meanwhile counts as soon as the database is back, since everything that is online is checked then.
 */
import { StoreAway } from '../store/store.ts'

/** How many are remembered; more than a node has agents. */
const MAX_REMEMBERED = 100_000

export class Remembered<Answer> {
  /** Those asked for last at the end. */
  readonly #answers = new Map<string, Answer>()
  readonly #max: number

  constructor({ max = MAX_REMEMBERED }: { max?: number } = {}) {
    this.#max = max
  }

  /** What `ask` answers; while the database is away, what it answered last. An answer of undefined is not remembered. */
  async answer(key: string, ask: () => Promise<Answer | undefined>): Promise<Answer | undefined> {
    try {
      return await this.fresh(key, ask)
    } catch (error) {
      const remembered = error instanceof StoreAway ? this.recall(key) : undefined
      if (remembered === undefined) throw error
      return remembered
    }
  }

  /** What `ask` answers, for `recall`. */
  async fresh(key: string, ask: () => Promise<Answer | undefined>): Promise<Answer | undefined> {
    const answer = await ask()
    this.#answers.delete(key)
    if (answer !== undefined) this.#keep(key, answer)
    return answer
  }

  /** What was answered last. */
  recall(key: string): Answer | undefined {
    return this.#answers.get(key)
  }

  #keep(key: string, answer: Answer): void {
    this.#answers.set(key, answer)
    if (this.#answers.size <= this.#max) return
    const [oldest] = this.#answers.keys()
    if (oldest !== undefined) this.#answers.delete(oldest)
  }
}
