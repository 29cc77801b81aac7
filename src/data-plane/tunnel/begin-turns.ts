/**
 * Turns to begin a session: of many that want to begin at once, a bounded number do. The others wait with next to nothing in
 * memory; half begun, they would fill it.
 */

interface BeginTurnsOptions {
  readonly atOnce: number
  /** How long a turn lasts at most, in milliseconds, even while its work goes on: a slow session must not hold up the others. */
  readonly longestMs: number
}

export class BeginTurns {
  readonly atOnce: number
  readonly #longestMs: number
  readonly #waiting: (() => void)[] = []
  #taken = 0

  constructor({ atOnce, longestMs }: BeginTurnsOptions) {
    this.atOnce = atOnce
    this.#longestMs = longestMs
  }

  /** Turns that are not over. */
  get taken(): number {
    return this.#taken
  }

  /** Resolves when the caller's turn comes, first come first served; call the result when the work is done. */
  async take(): Promise<() => void> {
    if (this.#taken < this.atOnce) this.#taken++
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
    let isOver = false
    const over = (): void => {
      if (isOver) return
      isOver = true
      clearTimeout(timer)
      this.#pass()
    }
    const timer = setTimeout(over, this.#longestMs).unref()
    return over
  }

  #pass(): void {
    const next = this.#waiting.shift()
    if (next) next()
    else this.#taken--
  }
}
