/** Large answers are given in turns, one to each caller, so that their memory is bounded: from the first read to the last byte. */
import type { ServerResponse } from 'node:http'
import { SharedTurns } from '../../lib/limits/shared-turns.ts'
import { Refusal } from '../../model/errors.ts'
import { shared } from '../../model/shared.ts'

/** Most that wait for their turn, and for how long, in milliseconds. */
const MAX_WAITING = 1000
const WAIT_MS = 60_000

/** How long a caller may read nothing of its answer, in milliseconds. */
const STALL_MS = 30_000

export class LargeAnswers {
  readonly #turns = new SharedTurns({
    ...{ atOnce: shared.largeAnswers.most, each: 1 },
    ...{ waiting: MAX_WAITING, waitMs: WAIT_MS },
  })

  /** Resolves when it is the caller's turn, which ends with the answer. Rejects with `Refusal` when it does not come in time. */
  async turn(owner: string, answer: ServerResponse): Promise<void> {
    const hasTurn = await this.#turns.take(owner)
    if (!hasTurn) {
      const msg = 'you have too many large answers under way; read them one after the other, and try again'
      throw new Refusal('SERVER_BUSY', msg, { headers: { 'retry-after': '5' } })
    }
    const over = (): void => this.#turns.over(owner)
    if (!answer.closed) {
      answer.once('close', over)
      answer.setTimeout(STALL_MS, () => answer.destroy())
      return
    }
    over()
    // Nobody reads it.
    throw new Refusal('SERVER_BUSY', 'the caller has left')
  }
}
