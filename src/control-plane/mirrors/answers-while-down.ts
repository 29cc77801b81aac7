/** Remembers answers of the database for times when it is down. */
import { StoreAway } from '../store/store.ts'

/** Most answers that are remembered; more than a node has agents. */
const MAX_REMEMBERED = 100_000

/**
 * Agents that were here a moment ago are let in again by the last answer. Changes meanwhile take effect once the database is
 * back, since everything online is checked then.
 */
export class AnswersWhileDown<Answer> {
  /** In the order of the last question. */
  readonly #answers = new Map<string, Answer>()
  readonly #max: number

  constructor({ max = MAX_REMEMBERED }: { max?: number } = {}) {
    this.#max = max
  }

  /** The answer of `ask`, or its last answer while the database is down. Undefined is not remembered. */
  async answer(key: string, ask: () => Promise<Answer | undefined>): Promise<Answer | undefined> {
    try {
      return await this.fresh(key, ask)
    } catch (error) {
      const remembered = error instanceof StoreAway ? this.recall(key) : undefined
      if (remembered === undefined) throw error
      return remembered
    }
  }

  /** The answer of `ask`, remembered for `recall`. */
  async fresh(key: string, ask: () => Promise<Answer | undefined>): Promise<Answer | undefined> {
    const answer = await ask()
    this.#answers.delete(key)
    if (answer !== undefined) this.#keep(key, answer)
    return answer
  }

  /** The last answer. */
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
