/** Which children have yet to say that they use the settings that they were told last: a reload is over when all do. */

/** How long an answer is waited for, in milliseconds: a child may be frozen, or start for long. */
const ANSWER_MS = 5000

/** One reload. */
interface Round {
  readonly number: number
  readonly missing: Set<string>
  readonly faults: string[]
  readonly end: () => void
}

export class UseAnswers {
  readonly #limitMs: number
  readonly #rounds = new Set<Round>()
  #last = 0

  constructor(limitMs = ANSWER_MS) {
    this.#limitMs = limitMs
  }

  /**
   * Calls `tell` with the number that answers are to have. Resolves when every child of `ids` has answered or ended, or took
   * too long, with those that did; rejects when one of them cannot use the settings.
   */
  async ask(ids: Iterable<string>, tell: (round: number) => void): Promise<readonly string[]> {
    const { promise: over, resolve: end } = Promise.withResolvers<void>()
    const round: Round = { number: ++this.#last, missing: new Set(ids), faults: [], end }
    this.#rounds.add(round)
    const timer = setTimeout(end, this.#limitMs)
    tell(round.number)
    endIfAll(round)
    await over
    clearTimeout(timer)
    this.#rounds.delete(round)
    if (round.faults.length > 0) throw new Error(round.faults.join('; '))
    return [...round.missing]
  }

  /** A child uses the settings of this round, and so none that are older, or cannot. Gives whether nobody waits for it. */
  answered(id: string, number: number, fault?: string): boolean {
    let isLate = true
    for (const round of this.#rounds) {
      isLate = false
      if (round.number > number) continue
      if (fault !== undefined && round.missing.has(id)) round.faults.push(`${id}: ${fault}`)
      round.missing.delete(id)
      endIfAll(round)
    }
    return isLate
  }

  /** The child has ended, or is one that never answers. Whoever takes its place starts with the newest settings. */
  left(id: string): void {
    for (const round of this.#rounds) {
      round.missing.delete(id)
      endIfAll(round)
    }
  }
}

function endIfAll({ missing, end }: Round): void {
  if (missing.size === 0) end()
}
