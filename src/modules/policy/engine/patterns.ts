/** Implements `matches`. */
import { affordable, BadPattern, checkPattern } from '../../../lib/patterns/pattern.ts'
import { compilePatterns, type PatternSearch } from '../../../lib/patterns/pattern-search.ts'
import type { Budget } from './budget.ts'
import { Fault, type Frame, type Impls } from './evaluation-frame.ts'

/** The largest pattern from traffic that is compiled, in instructions: compiling it holds the event loop. */
const MAX_LATE_PRICE = 200
/** The cost of compiling such a pattern, and of each of its instructions. */
const LATE_NANOS = 100_000
const LATE_INSTRUCTION_NANOS = 8000
/** How many compiled patterns from traffic are kept. */
const MAX_KEPT = 500

/** The cost of starting a search, and of each of its steps. */
const SEARCH_NANOS = 200
const STEP_NANOS = 26
/** How many steps a search may take at first: enough for a pattern that begins with `^` and fails soon. */
const FIRST_STEPS = 150
/** When they are not enough: steps per character of the text, or a multiple of the last steps, whichever is more. */
const STEPS_A_CHARACTER = 5
const MORE = 6

/** Literal patterns are compiled with their expression, and patterns made of traffic when they arrive. */
export class Patterns {
  /** Compiled patterns from traffic. */
  readonly #late = new Map<string, PatternSearch>()

  /** `matches` for an expression that has these patterns in it. */
  of(own: ReadonlyMap<string, PatternSearch>): Impls {
    return {
      'matches/2': (frame, text, pattern) => {
        if (typeof text !== 'string' || typeof pattern !== 'string') return undefined
        const search = own.get(pattern) ?? this.#late.get(pattern) ?? this.#compileLate(frame, pattern)
        return search instanceof Fault ? search : findPattern(frame, search, text)
      },
    }
  }

  #compileLate({ budget }: Frame, pattern: string): PatternSearch | Fault {
    try {
      payForLate(budget, pattern)
      checkPattern(pattern)
    } catch (error) {
      if (error instanceof BadPattern) return new Fault(UNFIT_LATE)
      throw error
    }
    const search = compilePatterns([pattern])
    const [oldest] = this.#late.keys()
    if (this.#late.size >= MAX_KEPT && oldest !== undefined) this.#late.delete(oldest)
    this.#late.set(pattern, search)
    return search
  }
}

/** Does not say what is wrong, since that would repeat what a visitor sent. */
export const UNFIT_LATE = 'a pattern that came with traffic cannot be compiled'

/** Charges for compiling a pattern that came with traffic, and returns its price; throws `BadPattern` for a large one. */
export function payForLate(budget: Budget, pattern: string): number {
  budget.charge(LATE_NANOS + pattern.length)
  const price = affordable(pattern)
  if (price > MAX_LATE_PRICE) throw new BadPattern('is too large to be compiled while traffic waits')
  budget.charge(price * LATE_INSTRUCTION_NANOS)
  return price
}

/** A search does not report how many steps it took, so we charge for those that it may take, and start with few. */
function findPattern({ budget }: Frame, search: PatternSearch, text: string): boolean {
  budget.charge(SEARCH_NANOS)
  for (let steps = FIRST_STEPS; ; steps = Math.max(steps * MORE, STEPS_A_CHARACTER * text.length)) {
    budget.charge(steps * STEP_NANOS)
    const answer = search(text, steps)
    if (answer !== undefined) return answer
  }
}
