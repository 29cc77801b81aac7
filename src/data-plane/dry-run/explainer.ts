/**
 * Explains on separate threads: one at a time for each caller, under a time limit, and never on the thread that serves
 * traffic. A thread has nothing of the server: no listeners, no store, no counters, no keys.
 */
import { BadValue, type BadValueKind } from '../../lib/shape/check.ts'
import { ownTurn } from '../../lib/threads/others-turn.ts'
import { threadFile } from '../../lib/threads/thread-file.ts'
import { OffLoop } from '../../lib/threads/worker-pool.ts'
import type { ExplainWork, Explanation } from '../../model/explanation.ts'

export type ExplainResult =
  | { readonly explanation: Explanation }
  | { readonly badValue: { readonly field: string; readonly kind: BadValueKind; readonly message: string } }

export class Explainer {
  readonly #offLoop = new OffLoop({ entry: threadFile('explain-thread', import.meta.url) })

  /** Rejects with `BadValue`, or with what `OffLoop.run` rejects with. */
  async explain(owner: string, work: ExplainWork): Promise<Explanation> {
    // A turn of its own: the edge was just read, and is now copied to the other thread.
    await ownTurn()
    // The thread runs `explain`.
    const result = (await this.#offLoop.run(owner, work)) as ExplainResult
    if ('explanation' in result) return result.explanation
    const { field, kind, message } = result.badValue
    throw new BadValue(field, kind, message)
  }

  close(): Promise<void> {
    return this.#offLoop.close()
  }
}
