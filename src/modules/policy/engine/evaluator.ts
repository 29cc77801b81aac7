/** Compiles checked expressions into functions that evaluate them within the budget of a request. */
import type { CelValue } from '@bufbuild/cel'
import { bindVariables, HAS } from './bind-variables.ts'
import type { Budget } from './budget.ts'
import { payFor, plainValue, textOf } from './cel-values.ts'
import { conversions } from './conversions.ts'
import { encodings } from './encodings.ts'
import { Fault, type Frame, type Impls } from './evaluation-frame.ts'
import { markParts } from './explain-parts.ts'
import type { NotePart } from './explain-watch.ts'
import { listFunctions } from './list-functions.ts'
import { Library } from './load-cel.ts'
import type { Moment } from './moment.ts'
import { operators } from './operators.ts'
import type { ParsedExpression } from './parsed.ts'
import { Patterns } from './patterns.ts'
import { planExpression } from './plan.ts'
import type { Site } from './policy-phases.ts'
import { Networks, requestFunctions } from './request-functions.ts'
import { textFunctions } from './text-functions.ts'
import { timeFunctions, Zones } from './times.ts'
import type { Cel } from './tree.ts'
import { entryReader, variableReader } from './variable-readers.ts'
import { variables } from './variables.ts'
import { withoutStacks } from './without-stacks.ts'

/** Returns the value of an expression. Throws `BudgetSpent`, or an error that says what failed. */
export type Evaluate = (moment: Moment) => CelValue

export class Evaluator {
  readonly cel: Cel
  readonly #library = new Library()
  readonly #patterns = new Patterns()
  readonly #functions = ownFunctions()

  constructor() {
    this.cel = this.#library.cel
  }

  /**
   * Compiles an expression that was checked for this site; throws `BadExpression` if it was not. Adds the paths of the
   * variables that it reads to `reads`. `parsed` was parsed on another thread when there is traffic, which parsing here would
   * hold up. `note` is called with the value of each part; this is not charged to the budget.
   */
  compile(
    text: string,
    site: Site,
    reads: Set<string>,
    { parsed, note }: { parsed: ParsedExpression; note?: NotePart | undefined },
  ): Evaluate {
    const known = variables(site)
    const marked = note && markParts(text, (name) => Object.hasOwn(known, name))
    const { expr, paths } = bindVariables(marked?.expr ?? parsed.expr, known)
    for (const path of paths) reads.add(path.replace(HAS, ''))
    const library = this.#library
    const slots = new Map(paths.map((path, i) => [path, i]))
    const run = planExpression(expr, {
      library,
      impls: { ...this.#functions, ...this.#patterns.of(parsed.patterns) },
      variable: (name) => {
        const slot = slots.get(name)
        return slot === undefined ? undefined : variableReader(name, slot, known, library)
      },
      entry: (name) => (slots.has(name) ? entryReader(name, library) : undefined),
      note: note && ((index, value) => note(index, marked?.texts[index] ?? '', value as CelValue)), // a CEL value
    })
    return (moment) => {
      const { budget } = moment
      const frame: Frame = { moment, budget, library, values: new Array<unknown>(paths.length), locals: [] }
      const value = run(frame)
      if (value instanceof Fault) throw withoutStacks(() => new Error(value.message))
      return value as CelValue // planned functions return CEL values
    }
  }

  /** A value as text; charges the budget for all of it. */
  text(value: CelValue, budget: Budget): string {
    this.payFor(value, budget)
    return textOf(this.#library, value)
  }

  /** Charges the budget for a value that is about to be written out. */
  payFor(value: CelValue, budget: Budget): void {
    payFor(this.cel, value, budget)
  }

  plain(value: CelValue): unknown {
    return plainValue(this.#library, value)
  }
}

/** All functions of expressions that we implement ourselves, in one table; the CEL library provides the others. */
function ownFunctions(): Impls {
  return {
    ...operators,
    ...conversions,
    ...textFunctions,
    ...listFunctions,
    ...encodings,
    ...requestFunctions(new Networks()),
    ...timeFunctions(new Zones()),
  }
}
