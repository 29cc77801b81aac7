/** Who explains a policy: told of each rule, expression and action while the policy itself runs, so that it cannot differ. */
import type { Outcome } from './action.ts'
import type { Evaluate, Evaluator } from './evaluator.ts'
import type { Rule } from './form.ts'
import type { Moment } from './moment.ts'
import type { Phase } from './phases.ts'

export interface PolicyWatch {
  /** The rules of a phase begin; all of them, also those that will not be reached. */
  phase(phase: Phase, rules: readonly Rule[]): void
  /** A rule is looked at. */
  rule(index: number): void
  /** A part of the expression under way was evaluated; parts are numbered from the outside in. */
  part(index: number, text: string, value: unknown): void
  /** An expression of the rule is over: its value, or what it stumbled over. */
  expression(text: string, result: { readonly value: unknown } | { readonly error: Error }): void
  /** Whether the rule applies; undefined when that cannot be told any more. */
  applies(isOn: boolean | undefined): void
  /** An action of the rule is about to run. */
  acts(index: number, moment: Moment): void
  acted(index: number, moment: Moment, outcome: Outcome | Error): void
}

/** An expression of a rule that tells `watch` what it comes to. */
export function watchExpression(
  text: string,
  { plain: unwatched, compile, evaluator, watch }: WatchedCompile & { watch: PolicyWatch | undefined },
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
  /** What evaluates it where nobody watches. */
  readonly plain: Evaluate
  readonly compile: (note: NotePart) => Evaluate
  readonly evaluator: Evaluator
}

/** Told of the value of each part of an expression. */
export type NotePart = (index: number, text: string, value: Parameters<Evaluator['plain']>[0]) => void

function plain(evaluator: Evaluator, value: Parameters<Evaluator['plain']>[0]): unknown {
  try {
    return evaluator.plain(value)
  } catch {
    // Nested too deep to be shown; the expression goes on with it all the same.
    return null
  }
}
