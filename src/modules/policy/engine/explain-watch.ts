/** The observer that explains a policy. */
import type { Outcome } from './action.ts'
import type { Evaluate, Evaluator } from './evaluator.ts'
import type { Moment } from './moment.ts'
import type { Rule } from './policy-form.ts'
import type { Phase } from './policy-phases.ts'

/** Called while the policy itself runs, so that the policy and its explanation cannot differ. */
export interface PolicyWatch {
  /** A phase begins. `rules` are all its rules, even those that will not be reached. */
  phase(phase: Phase, rules: readonly Rule[], moment: Moment): void
  /** The rule with this index begins. */
  rule(index: number): void
  /** A part of the present expression was evaluated; parts are numbered from the outside in. */
  part(index: number, text: string, value: unknown): void
  /** An expression of the rule was evaluated: its value, or why it failed. */
  expression(text: string, result: { readonly value: unknown } | { readonly error: Error }): void
  /** Whether the rule applies; undefined when that could not be decided. */
  applies(isOn: boolean | undefined): void
  /** An action of the rule is about to run. */
  acts(index: number, moment: Moment): void
  acted(index: number, moment: Moment, outcome: Outcome | Error): void
}

/** An expression of a rule that reports its value to `watch`. */
export function watchExpression(
  text: string,
  { plain: unwatched, compile, evaluator, watch }: WatchedCompile,
): Evaluate {
  if (!watch) return unwatched
  const evaluate = compile((index, part, value) => watch.part(index, part, plain(evaluator, value)))
  return (moment) => {
    try {
      const value = evaluate(moment)
      watch.expression(text, { value: plain(evaluator, value) })
      return value
    } catch (error) {
      watch.expression(text, { error: error instanceof Error ? error : new Error(String(error)) })
      throw error
    }
  }
}

interface WatchedCompile {
  /** The expression compiled without marks, for when there is no watch. */
  readonly plain: Evaluate
  readonly compile: (note: NotePart) => Evaluate
  readonly evaluator: Evaluator
  readonly watch: PolicyWatch | undefined
}

/** Called with the value of each part of an expression. */
export type NotePart = (index: number, text: string, value: Parameters<Evaluator['plain']>[0]) => void

function plain(evaluator: Evaluator, value: Parameters<Evaluator['plain']>[0]): unknown {
  try {
    return evaluator.plain(value)
  } catch {
    // Nested too deep to be shown; the expression itself can still use it.
    return null
  }
}
