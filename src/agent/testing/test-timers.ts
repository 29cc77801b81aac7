/** For tests: a clock that moves only when told to, and that can sleep while its timers stand still. */
import type { Timers } from '../timers.ts'

interface Waiting {
  readonly due: number
  readonly run: () => void
}

export class TestTimers implements Timers {
  #wallMs = 1_700_000_000_000
  #awakeMs = 0
  readonly #waiting = new Set<Waiting>()

  /** How many timers are pending. */
  get waiting(): number {
    return this.#waiting.size
  }

  /** Milliseconds until the next timer. */
  get next(): number | undefined {
    return this.#first() && (this.#first()?.due ?? 0) - this.#awakeMs
  }

  now(): number {
    return this.#wallMs
  }

  after(ms: number, run: () => void): () => void {
    const timer = { due: this.#awakeMs + ms, run }
    this.#waiting.add(timer)
    return () => this.#waiting.delete(timer)
  }

  /** Lets time pass while awake, so that timers run. */
  pass(ms: number): void {
    const end = this.#awakeMs + ms
    for (;;) {
      const first = this.#first()
      if (!first || first.due > end) break
      this.#to(first.due)
      this.#waiting.delete(first)
      first.run()
    }
    this.#to(end)
  }

  /** Lets time pass while asleep, so that the clock moves and the timers do not. */
  sleep(ms: number): void {
    this.#wallMs += ms
  }

  #to(awakeMs: number): void {
    this.#wallMs += awakeMs - this.#awakeMs
    this.#awakeMs = awakeMs
  }

  #first(): Waiting | undefined {
    return [...this.#waiting].toSorted((a, b) => a.due - b.due)[0]
  }
}
