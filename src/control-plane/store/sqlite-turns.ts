/** Takes turns on SQLite's one connection: one transaction at a time, and single statements between transactions. */
import { Overdue } from './limits.ts'

interface Waiting {
  readonly isTransaction: boolean
  readonly letIn: () => void
}

export class SqliteTurns {
  /** Open transactions, at most one, plus overdue statements that block the thread. */
  #holds = 0
  readonly #waiting: Waiting[] = []

  /** Waits until no transaction is open. A statement sent then runs before any transaction that begins later. */
  async pass(limitMs: number): Promise<void> {
    if (this.#isFree) return
    await this.#wait(limitMs, false)
  }

  /** Waits for a transaction's turn; end it with `giveBack`. */
  async take(limitMs: number): Promise<void> {
    if (this.#isFree) this.#holds++
    else await this.#wait(limitMs, true)
  }

  giveBack(): void {
    this.#holds--
    while (this.#holds === 0) {
      const next = this.#waiting.shift()
      if (!next) return
      if (next.isTransaction) this.#holds++
      next.letIn()
    }
  }

  /** Keeps everyone waiting until `settled` is. */
  holdUntil(settled: Promise<unknown>): void {
    this.#holds++
    void settled.catch(() => {}).then(() => this.giveBack())
  }

  get #isFree(): boolean {
    return this.#holds === 0 && this.#waiting.length === 0
  }

  #wait(limitMs: number, isTransaction: boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiting: Waiting = {
        isTransaction,
        letIn: () => {
          clearTimeout(timer)
          resolve()
        },
      }
      const timer = setTimeout(() => {
        this.#waiting.splice(this.#waiting.indexOf(waiting), 1)
        reject(new Overdue('waiting for a free connection', limitMs))
      }, limitMs)
      this.#waiting.push(waiting)
    })
  }
}
