/** Compiles checked expressions into what evaluates them, each call and loop of them under the budget of its request. */
import { createRequire } from 'node:module'
import type { CelFunc, CelInput, CelValue } from '@bufbuild/cel'
import { affordable, BadPattern, checkPattern } from '../lib/pattern.ts'
import { compilePatterns, type PatternSearch } from '../lib/pattern-search.ts'
import { bindVariables, HAS, RANGE, TURN } from './bind-variables.ts'
import { BudgetSpent } from './budget.ts'
import { cel as loadCel, parseExpression } from './cel.ts'
import { ownFunctions } from './cel-functions.ts'
import { plainValue, textOf, weightOf } from './cel-values.ts'
import type { Moment } from './moment.ts'
import type { Site } from './phases.ts'
import type { Shape } from './shape.ts'
import { type Cel, children, type Expr, literal } from './tree.ts'
import { Instant, variableValues } from './variable-values.ts'
import { variables } from './variables.ts'

/** What an expression gives. Throws `BudgetSpent`, or an error that says what it stumbled over. */
export type Evaluate = (moment: Moment) => CelValue

/** Patterns that come with traffic and not with the expression are compiled on the loop: only small ones. */
const MAX_LATE_PRICE = 200
/** What it costs to compile one. */
const LATE_PATTERN_STEPS = 1500
/** Of these, how many are kept. */
const MAX_KEPT = 500
/** Steps of the search that cost as much as one step of the evaluator. */
const SEARCH_STEPS_A_STEP = 15
/** Steps of a search for each character, at a guess: it does not tell how many it took. */
const SEARCH_STEPS_A_CHARACTER = 5

/** What a call costs, whatever it is given. */
const CALL_STEPS = 3

const require = createRequire(import.meta.url)

export class Evaluator {
  readonly cel: Cel
  readonly #env: ReturnType<Cel['celEnv']>
  readonly #readTime: ReturnType<Cel['plan']>
  /** Patterns that came with traffic. */
  readonly #late = new Map<string, PatternSearch>()
  /** Patterns of the expression under way. */
  #patterns: ReadonlyMap<string, PatternSearch> = new Map()
  /** Of the evaluation under way: it never waits, so that there is one at a time. */
  #moment: Moment | undefined

  constructor() {
    const cel = loadCel()
    this.cel = cel
    // Its other half, in the same form of module as the first.
    const { strings } = require('@bufbuild/cel/ext') as typeof import('@bufbuild/cel/ext')
    const own = ownFunctions(cel, {
      moment: () => this.#running,
      charge: (steps) => this.#running.budget.charge(steps),
      matches: (text, pattern) => this.#matches(text, pattern),
    })
    const { funcs } = cel.celEnv({ funcs: [...strings, ...own] })
    this.#readTime = cel.plan(cel.celEnv(), cel.parse('timestamp(text)'))
    const { DYN, INT } = cel.CelScalar
    const groups = Map.groupBy(funcs, ({ name }) => name)
    this.#env = cel.celEnv({
      funcs: [
        // Before the functions of its name, which are tried one after the other.
        ...[...groups].flatMap(([name, group]) => [this.#toll(name), ...group]),
        cel.celFunc(TURN, [INT, DYN], DYN, (nodes, goesOn) => {
          this.#running.budget.charge(Number(nodes))
          return goesOn
        }),
        this.#toll(RANGE),
        cel.celFunc(RANGE, [DYN], DYN, (range) => range),
      ],
    })
  }

  /**
   * Takes an expression that was checked for this site; throws `BadExpression` when it was not. The paths of the variables
   * that it reads are added to `reads`.
   */
  compile(text: string, site: Site, reads: Set<string>): Evaluate {
    const known = variables(site)
    const tree = parseExpression(text)
    const patterns = new Map(literalPatterns(tree).map((pattern) => [pattern, compilePatterns([pattern])]))
    const { expr, paths, nodes } = bindVariables(tree, known)
    const run = this.cel.plan(this.#env, expr)
    for (const path of paths) reads.add(path.replace(HAS, ''))
    return (moment) => {
      moment.budget.charge(nodes)
      this.#moment = moment
      this.#patterns = patterns
      // Errors are values to the evaluator, thousands of them if an expression is made for that: their stacks cost the most.
      const { stackTraceLimit } = Error
      Error.stackTraceLimit = 0
      try {
        const data: Record<string, CelInput> = {}
        for (const path of paths) {
          const value = this.#variable(path, moment, known)
          if (value !== undefined) data[path] = value
        }
        const value = run(data)
        if (moment.budget.isSpent) throw new BudgetSpent()
        if (this.cel.isCelError(value)) throw new Error(value.message)
        return value
      } finally {
        Error.stackTraceLimit = stackTraceLimit
        this.#moment = undefined
      }
    }
  }

  text(value: CelValue): string {
    return textOf(this.cel, value)
  }

  plain(value: CelValue): unknown {
    return plainValue(this.cel, value)
  }

  get #running(): Moment {
    if (!this.#moment) throw new Error('no expression is being evaluated')
    return this.#moment
  }

  /** What makes a call pay for what it is given, and leaves the rest to the functions of its name. */
  #toll(name: string): CelFunc {
    const call: CelFunc['call'] = (id, target, args) => {
      const { budget } = this.#running
      try {
        budget.charge(CALL_STEPS)
        // To make a list longer does not look at what is in it.
        if (name === '_+_' && args.every((arg) => this.cel.isCelList(arg))) return undefined
        if (target !== undefined) budget.charge(weightOf(this.cel, target, budget.left))
        for (const arg of args) budget.charge(weightOf(this.cel, arg, budget.left))
        return undefined
      } catch (error) {
        return this.cel.celError(error, id)
      }
    }
    const { celFunc, CelScalar } = this.cel
    const none = celFunc(name, [], CelScalar.DYN, () => null)
    return Object.create(none, { call: { value: call }, id: { value: `${name} toll` } }) as CelFunc // as `none` in all else
  }

  #variable(path: string, moment: Moment, known: Readonly<Record<string, Shape>>): CelInput | undefined {
    if (path.startsWith(HAS)) return this.#read(path.slice(HAS.length), moment, known) !== undefined
    const value = this.#read(path, moment, known)
    if (value !== undefined) moment.budget.charge(1)
    return value
  }

  #read(path: string, moment: Moment, known: Readonly<Record<string, Shape>>): CelInput | undefined {
    const reader = Object.hasOwn(variableValues, path) ? variableValues[path] : undefined
    if (reader) return this.#input(reader(moment))
    const [root = '', ...names] = path.split('.')
    if (root === 'actions' && names.length > 0) return result(moment, names)
    // A record as a whole: what of it is there.
    let shape = Object.hasOwn(known, root) ? known[root] : undefined
    for (const name of names) shape = shape?.fields?.[name]
    if (!shape?.fields) return undefined
    const fields = Object.entries(shape.fields)
      .filter(([, each]) => each.kind !== 'absent')
      .map(([name]) => [name, this.#read(`${path}.${name}`, moment, known)] as const)
      .filter(([, value]) => value !== undefined)
    return fields.length === 0 ? undefined : (new Map(fields) as CelInput)
  }

  #input(value: unknown): CelInput | undefined {
    if (value instanceof Instant) return this.#timestamp(value)
    return value as CelInput | undefined // what `variableValues` gives is what the evaluator takes
  }

  #timestamp({ millis }: Instant): CelInput {
    const made = this.#readTime({ text: new Date(millis).toISOString() })
    if (this.cel.isCelError(made)) throw new Error('a time cannot be read')
    return made
  }

  #matches(text: string, pattern: string): boolean {
    const { budget } = this.#running
    const search = this.#patterns.get(pattern) ?? this.#late.get(pattern) ?? this.#compileLate(pattern)
    const most = budget.left * SEARCH_STEPS_A_STEP
    const found = search(text, most)
    budget.charge(
      found === undefined ? budget.left + 1 : (text.length * SEARCH_STEPS_A_CHARACTER) / SEARCH_STEPS_A_STEP,
    )
    return found === true
  }

  #compileLate(pattern: string): PatternSearch {
    this.#running.budget.charge(LATE_PATTERN_STEPS)
    if (affordable(pattern) > MAX_LATE_PRICE) throw new BadPattern('is too large to be compiled while traffic waits')
    checkPattern(pattern)
    const search = compilePatterns([pattern])
    const [oldest] = this.#late.keys()
    if (this.#late.size >= MAX_KEPT && oldest !== undefined) this.#late.delete(oldest)
    this.#late.set(pattern, search)
    return search
  }
}

/** The patterns of `matches` that stand in the expression itself. */
function literalPatterns(expr: Expr): string[] {
  const { exprKind: kind } = expr
  const pattern =
    kind.case === 'callExpr' && kind.value.function === 'matches' ? literal(kind.value.args.at(-1)) : undefined
  return [...(pattern === undefined ? [] : [pattern]), ...children(expr).flatMap(literalPatterns)]
}

/** What an action left; empty when it did not run. */
function result(moment: Moment, [, action, ...fields]: readonly string[]): CelInput | undefined {
  if (action === undefined) return new Map(moment.results) as CelInput
  if (fields.length > 0) return undefined
  return moment.results.get(action) as CelInput | undefined
}
