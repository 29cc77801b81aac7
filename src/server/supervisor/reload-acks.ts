/** Keeps track of the children that have yet to confirm reloaded settings; a reload is over when all have. */

/** How long to wait for an answer, in milliseconds: a child may be frozen, or take long to start. */
const ANSWER_MS = 5000

/** One reload. */
interface Round {
  readonly number: number
  readonly missing: Set<string>
  readonly faults: string[]
  readonly end: () => void
}

export class ReloadAcks {
  readonly #limitMs: number
  readonly #rounds = new Set<Round>()
  #last = 0

  constructor(limitMs = ANSWER_MS) {
    this.#limitMs = limitMs
  }

  /**
   * Calls `tell` with the number that answers must carry. Resolves when every child of `ids` has answered, ended or taken too
   * long, with the ids of the latter; rejects when a child cannot use the settings.
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

  /** A child uses the settings of this round instead of older ones, or cannot. Returns whether no round waits for answers. */
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

  /** The child has ended, or never answers. Its replacement starts with the newest settings. */
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
