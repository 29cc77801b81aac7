/** Who may use the one connection of SQLite: one transaction at a time, and between two whoever asks a single question. */
import { Overdue } from './limits.ts'

interface Waiting {
  readonly isTransaction: boolean
  readonly letIn: () => void
}

export class SqliteTurns {
  /** Transactions that are open, at most one, and statements that hold up the thread. */
  #holds = 0
  readonly #waiting: Waiting[] = []

  /** Waits for a moment without a transaction. What is asked then comes before any transaction that begins later. */
  async pass(limitMs: number): Promise<void> {
    if (this.#isFree) return
    await this.#wait(limitMs, false)
  }

  /** Waits for the turn of a transaction, which `giveBack` ends. */
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

  /** Keeps everyone waiting until this is settled. */
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
