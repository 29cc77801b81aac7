/**
 * Turns the tree of a checked expression into functions that evaluate it.
 *
 * One thing: a function for each kind of expression, which call each other.
 */
import type { CelInput } from '@bufbuild/cel'
import { entryOf, payFor, toCel } from './cel-values.ts'
import { Fault, type Frame, type Impl, type Impls, type Run } from './evaluation-frame.ts'
import { NOTE } from './explain-parts.ts'
import type { Library } from './load-cel.ts'
import { itemsOf, MAX_ITEMS } from './operators.ts'
import { type Expr, literal, type Node, qualifiedName } from './tree.ts'

interface PlanOptions {
  readonly library: Library
  readonly impls: Impls
  /** The function that reads a variable; undefined when there is no such variable. */
  readonly variable: (name: string) => Run | undefined
  /** The function that reads one entry of a map, for variables that are costly to read as a whole. */
  readonly entry: (name: string) => ((frame: Frame, key: string) => unknown) | undefined
  /** Called with the values of marked parts. */
  readonly note?: ((index: number, value: unknown) => void) | undefined
}

/** Prices, all in nanoseconds. For each node of the tree: */
const NODE_NANOS = 30
const CALL_NANOS = 60
/** For starting an evaluation. */
const EVALUATION_NANOS = 600
const LIBRARY_NANOS = 4000
/** For a call of the library that fails. */
const LIBRARY_FAULT_NANOS = 10_000
const ITEM_NANOS = 40
const ENTRY_NANOS = 120
const LOOP_NANOS = 400
const TURN_NANOS = 80

/** The library's own evaluator cannot be stopped, and is some ten times slower. */
export function planExpression(expr: Expr, options: PlanOptions): Run {
  const planner = new Planner(options)
  const run = planner.plan(expr, new Map())
  const nanos = EVALUATION_NANOS + planner.nanos
  return (frame) => {
    frame.budget.charge(nanos)
    return run(frame)
  }
}

/** Where the variables of loops are in `Frame.locals`, by name. */
type Locals = ReadonlyMap<string, number>

/** The most operands that a function of ours takes. */
const MAX_OPERANDS = 4

class Planner {
  readonly #options: PlanOptions
  readonly #library: Library
  /**
   * The fixed price of the parts planned so far, without those inside loops: charged once when an evaluation starts. A loop
   * charges the price of its parts once per iteration; functions that read values charge what depends on the values.
   */
  nanos = 0
  /** How many loops enclose the part that is being planned. */
  #depth = 0
  /** The values of constant parts. */
  readonly #constants = new WeakMap<Run, unknown>()

  constructor(options: PlanOptions) {
    this.#options = options
    this.#library = options.library
  }

  plan(expr: Expr, locals: Locals): Run {
    this.nanos += NODE_NANOS
    const { exprKind: kind } = expr
    switch (kind.case) {
      case 'constExpr':
        return this.#constant(constantOf(kind.value, this.#library))
      case 'identExpr':
        return this.#identifier(kind.value.name, locals)
      case 'selectExpr':
        return this.#select(kind.value, locals)
      case 'callExpr':
        return this.#call(kind.value, locals)
      case 'listExpr':
        return this.#list(kind.value, locals)
      case 'structExpr':
        return this.#map(kind.value, locals)
      case 'comprehensionExpr':
        return this.#loop(kind.value, locals)
      case undefined:
        throw new Error('an expression has an empty part')
    }
  }

  #part(expr: Expr | undefined, locals: Locals): Run {
    if (!expr) throw new Error('an expression has a part missing')
    return this.plan(expr, locals)
  }

  #constant(value: unknown): Run {
    const run = (): unknown => value
    this.#constants.set(run, value)
    return run
  }

  #identifier(name: string, locals: Locals): Run {
    const slot = locals.get(name)
    if (slot !== undefined) return ({ locals: bound }) => bound[slot]
    const plain = name.replace(/^\./, '')
    const variable = this.#options.variable(plain)
    if (variable) return variable
    const type = this.#library.typeNamed(plain)
    return this.#constant(type ?? new Fault(`there is no variable ${plain}`))
  }

  #select({ operand, field, testOnly }: Node<'selectExpr'>, locals: Locals): Run {
    const entry = this.#entryOf(operand, locals)
    if (entry) {
      return testOnly
        ? (frame) => present(entry(frame, field))
        : (frame) => entry(frame, field) ?? new Fault(`there is no field ${field}`)
    }
    const of = this.#part(operand, locals)
    const { isCelMap } = this.#library.cel
    if (testOnly) {
      return (frame) => {
        const value = of(frame)
        if (value instanceof Fault) return value
        return isCelMap(value) && value.get(field) !== undefined
      }
    }
    return (frame) => {
      const value = of(frame)
      if (value instanceof Fault) return value
      const found = isCelMap(value) ? value.get(field) : undefined
      return found === undefined ? new Fault(`there is no field ${field}`) : found
    }
  }

  /** The function that reads one entry of `expr`, when that is a variable with such a function. */
  #entryOf(expr: Expr | undefined, locals: Locals): ReturnType<PlanOptions['entry']> {
    if (expr?.exprKind.case !== 'identExpr') return undefined
    const { name } = expr.exprKind.value
    return locals.has(name) ? undefined : this.#options.entry(name.replace(/^\./, ''))
  }

  #call(call: Node<'callExpr'>, locals: Locals): Run {
    const { function: name, target, args } = call
    if (!target) {
      if (name === '_&&_') return this.#logic(args, locals, false)
      if (name === '_||_') return this.#logic(args, locals, true)
      if (name === '_?_:_') return this.#choice(args, locals)
      if (name === '_[_]') return this.#index(args, locals)
      if (name === '@not_strictly_false') {
        const of = this.#part(args[0], locals)
        return (frame) => of(frame) !== false
      }
      if (name === '@in') return this.#membership(args, locals)
      if (name === NOTE) return this.#noteStep(args, locals)
      return this.#apply(name, undefined, args, locals)
    }
    const space = this.#namespace(target, name, locals)
    return space === undefined ? this.#apply(name, target, args, locals) : this.#apply(space, undefined, args, locals)
  }

  /** A marked part. The mark must not change the price, so its own price is subtracted. */
  #noteStep([number, part]: readonly Expr[], locals: Locals): Run {
    this.nanos -= NODE_NANOS
    const index = Number(literal(number))
    const of = this.#part(part, locals)
    const { note } = this.#options
    return (frame) => {
      const value = of(frame)
      if (!(value instanceof Fault)) note?.(index, value)
      return value
    }
  }

  /** The full name, such as `base64.encode`, when the target of a call is a namespace and not a value. */
  #namespace(target: Expr, name: string, locals: Locals): string | undefined {
    const space = qualifiedName(target)
    const [root = ''] = space?.split('.') ?? []
    if (space === undefined || locals.has(root) || this.#options.variable(root)) return undefined
    const full = `${space}.${name}`
    const isOwn = Array.from({ length: MAX_OPERANDS }, (_, count) => `${full}/${count}`).some((key) =>
      Object.hasOwn(this.#options.impls, key),
    )
    return isOwn || this.#library.has(full) ? full : undefined
  }

  #apply(name: string, target: Expr | undefined, args: readonly Expr[], locals: Locals): Run {
    const operands = [...(target ? [target] : []), ...args].map((operand) => this.plan(operand, locals))
    const key = `${name}/${operands.length}`
    const own = Object.hasOwn(this.#options.impls, key) ? this.#options.impls[key] : undefined
    this.nanos += CALL_NANOS
    const library = this.#library
    const fallback = (frame: Frame, values: readonly unknown[]): unknown => {
      frame.budget.charge(LIBRARY_NANOS)
      for (const value of values) payFor(library.cel, value, frame.budget)
      const value = target ? library.call(name, values[0], values.slice(1)) : library.call(name, undefined, values)
      if (value instanceof Fault) frame.budget.charge(LIBRARY_FAULT_NANOS)
      return value
    }
    const run = callOf(operands, own, library, fallback)
    // A call with a literal is evaluated once, now: `timestamp('2024-01-01T00:00:00Z')`.
    const [only] = operands
    if (pure.has(key) && only && this.#constants.has(only)) return computeOnce(run)
    return run
  }

  #logic(args: readonly Expr[], locals: Locals, decisive: boolean): Run {
    const parts = args.map((arg) => this.plan(arg, locals))
    const library = this.#library
    return (frame) => {
      let fault: Fault | undefined
      for (const part of parts) {
        const value = part(frame)
        if (value === decisive) return decisive
        if (value === !decisive) continue
        fault ??= value instanceof Fault ? value : new Fault(`a condition is a ${library.typeName(value)}`)
      }
      return fault ?? !decisive
    }
  }

  #choice([test, yes, no]: readonly Expr[], locals: Locals): Run {
    const [condition, first, second] = [this.#part(test, locals), this.#part(yes, locals), this.#part(no, locals)]
    return (frame) => {
      const value = condition(frame)
      if (value === true) return first(frame)
      if (value === false) return second(frame)
      return value instanceof Fault ? value : new Fault(`a condition is a ${this.#library.typeName(value)}`)
    }
  }

  #index([of, by]: readonly Expr[], locals: Locals): Run {
    const key = this.#part(by, locals)
    const named = literal(by)
    // The message names a key only when it is a literal: others may come from a visitor.
    const noEntry = new Fault(named === undefined ? 'there is no such entry' : `there is no entry '${named}'`)
    const entry = this.#entryOf(of, locals)
    if (entry) {
      return (frame) => {
        const name = key(frame)
        if (name instanceof Fault) return name
        return (typeof name === 'string' ? entry(frame, name) : undefined) ?? noEntry
      }
    }
    const operand = this.#part(of, locals)
    const { cel } = this.#library
    return (frame) => {
      const value = operand(frame)
      if (value instanceof Fault) return value
      const at = key(frame)
      if (at instanceof Fault) return at
      if (cel.isCelMap(value)) return orElse(entryOf(cel, value, at, frame.budget), noEntry)
      if (!cel.isCelList(value)) return new Fault(`a ${this.#library.typeName(value)} has no entries`)
      const number =
        typeof at === 'bigint' || typeof at === 'number' ? Number(at) : cel.isCelUint(at) ? Number(at.value) : -1
      return orElse(Number.isInteger(number) && number >= 0 ? value.get(number) : undefined, noEntry)
    }
  }

  #membership(args: readonly Expr[], locals: Locals): Run {
    const [item, of] = args
    const entry = this.#entryOf(of, locals)
    if (!entry) {
      const run = this.#apply('@in', undefined, args, locals)
      return this.#amongLiterals(args, locals) ?? run
    }
    const key = this.#part(item, locals)
    return (frame) => {
      const name = key(frame)
      if (name instanceof Fault) return name
      return typeof name === 'string' && present(entry(frame, name)) === true
    }
  }

  /** `x in ['a', 'b']`, for a list of string literals. */
  #amongLiterals([item, of]: readonly Expr[], locals: Locals): Run | undefined {
    if (of?.exprKind.case !== 'listExpr') return undefined
    const texts = of.exprKind.value.elements.map((element) => this.#constants.get(this.plan(element, locals)))
    if (!texts.every((text) => typeof text === 'string')) return undefined
    const known: ReadonlySet<unknown> = new Set(texts)
    const part = this.#part(item, locals)
    return (frame) => {
      const value = part(frame)
      return value instanceof Fault ? value : known.has(value)
    }
  }

  #list({ elements }: Node<'listExpr'>, locals: Locals): Run {
    const parts = elements.map((element) => this.plan(element, locals))
    this.nanos += ITEM_NANOS * (1 + parts.length)
    const { celList } = this.#library.cel
    const run: Run = (frame) => {
      const items: CelInput[] = []
      for (const part of parts) {
        const value = part(frame)
        if (value instanceof Fault) return value
        items.push(value as CelInput) // parts return values of CEL
      }
      return celList(items)
    }
    if (!parts.every((part) => this.#constants.has(part))) return run
    const items = parts.map((part) => this.#constants.get(part))
    return this.#constant(items.find((item) => item instanceof Fault) ?? celList(items as CelInput[]))
  }

  #map({ messageName, entries }: Node<'structExpr'>, locals: Locals): Run {
    if (messageName !== '') throw new Error('there are no types of messages here')
    const parts = entries.map(
      ({ keyKind, value }) =>
        [this.#part(keyKind.case === 'mapKey' ? keyKind.value : undefined, locals), this.#part(value, locals)] as const,
    )
    this.nanos += ENTRY_NANOS * (1 + parts.length)
    const { celMap, isCelUint } = this.#library.cel
    return (frame) => {
      const map = new Map<string, CelInput>()
      const seen = new Set<unknown>()
      for (const [key, value] of parts) {
        const name = key(frame)
        if (name instanceof Fault) return name
        const given = typeof name === 'number' && Number.isInteger(name) ? BigInt(name) : name
        if (typeof given !== 'string' && typeof given !== 'bigint' && typeof given !== 'boolean' && !isCelUint(given)) {
          return new Fault(`a ${this.#library.typeName(name)} cannot be the key of a map`)
        }
        const item = value(frame)
        if (item instanceof Fault) return item
        const same = isCelUint(given) ? given.value : given
        if (seen.has(same)) return new Fault('a map has a key twice')
        seen.add(same)
        // The key was checked above, and parts return values of CEL.
        map.set(given as string, item as CelInput)
      }
      return celMap(map)
    }
  }

  /** A loop: the parser turns `all`, `exists`, `exists_one`, `map` and `filter` into this. */
  #loop(
    { iterVar, iterRange, accuVar, accuInit, loopCondition, loopStep, result }: Node<'comprehensionExpr'>,
    locals: Locals,
  ): Run {
    const range = this.#part(iterRange, locals)
    const grows = accuInit?.exprKind.case === 'listExpr' && accuInit.exprKind.value.elements.length === 0
    const start = this.#part(accuInit, locals)
    // Each nested loop has its own places in `locals`, since the names of two loops may be the same.
    const [item, sum] = [this.#depth * 2, this.#depth * 2 + 1]
    const inside: Locals = new Map([...locals, [iterVar, item], [accuVar, sum]])
    this.#depth++
    this.nanos += LOOP_NANOS
    const before = this.nanos
    const append = grows ? this.#append(loopStep, inside, accuVar) : undefined
    const step = append ? undefined : this.#part(loopStep, inside)
    const condition = append ? undefined : this.#part(loopCondition, inside)
    const turn = this.nanos - before + TURN_NANOS
    this.nanos = before
    const end = this.#part(result, inside)
    this.#depth--
    const { isCelMap, isCelList, celList } = this.#library.cel
    return (frame) => {
      const over = range(frame)
      if (over instanceof Fault) return over
      if (!isCelMap(over) && !isCelList(over)) return new Fault(`a loop goes through a ${this.#library.typeName(over)}`)
      const { locals: bound, budget } = frame
      const grown: CelInput[] = []
      bound[sum] = start(frame)
      let fault: unknown
      for (const each of isCelMap(over) ? over.keys() : itemsOf(over, budget)) {
        budget.charge(turn)
        bound[item] = each
        if (append) {
          fault = append(frame, grown)
          if (fault) break
          continue
        }
        if (condition?.(frame) !== true) break
        bound[sum] = step?.(frame)
      }
      if (append) bound[sum] = fault ?? celList(grown)
      return bound[sum] instanceof Fault ? bound[sum] : end(frame)
    }
  }

  /**
   * Appends to the list that `map` and `filter` build up, instead of `sum + [x]`, which would copy the list at every
   * iteration. Undefined for a loop of another form.
   */
  #append(
    step: Expr | undefined,
    locals: Locals,
    sum: string,
  ): ((frame: Frame, grown: CelInput[]) => unknown) | undefined {
    const { exprKind: kind } = step ?? {}
    if (kind?.case !== 'callExpr') return undefined
    const { function: name, args } = kind.value
    if (name === '_?_:_' && isNamed(args[2], sum)) {
      const add = this.#append(args[1], locals, sum)
      if (!add) return undefined
      const test = this.#part(args[0], locals)
      return (frame, grown) => {
        const value = test(frame)
        if (value === true) return add(frame, grown)
        if (value === false) return undefined
        return value instanceof Fault ? value : new Fault(`a condition is a ${this.#library.typeName(value)}`)
      }
    }
    const [, added] = args
    if (name !== '_+_' || !isNamed(args[0], sum) || added?.exprKind.case !== 'listExpr') return undefined
    const [only, ...others] = added.exprKind.value.elements
    if (!only || others.length > 0) return undefined
    const item = this.plan(only, locals)
    return (frame, grown) => {
      const value = item(frame)
      if (value instanceof Fault) return value
      if (grown.length >= MAX_ITEMS) return new Fault('a list has become too long')
      grown.push(value as CelInput) // parts return values of CEL
      return undefined
    }
  }
}

/** `found`, which may be null, or `missing` when it is undefined. */
function orElse(found: unknown, missing: Fault): unknown {
  return found === undefined ? missing : found
}

function present(value: unknown): unknown {
  return value instanceof Fault ? value : value !== undefined
}

function isNamed(expr: Expr | undefined, name: string): boolean {
  return expr?.exprKind.case === 'identExpr' && expr.exprKind.value.name === name
}

/** Functions without side effects that are costly, and so worth evaluating ahead of time. */
const pure: ReadonlySet<string> = new Set(['timestamp/1', 'duration/1'])

function computeOnce(run: Run): Run {
  let value: unknown
  return (frame) => {
    value ??= run(frame)
    return value
  }
}

function constantOf({ constantKind: kind }: Node<'constExpr'>, { cel }: Library): unknown {
  switch (kind.case) {
    case 'uint64Value':
      return cel.celUint(kind.value)
    case 'nullValue':
      return null
    case 'stringValue':
    case 'bytesValue':
    case 'doubleValue':
    case 'boolValue':
    case 'int64Value':
      return kind.value
    case 'durationValue':
    case 'timestampValue':
    case undefined:
      throw new Error('an expression has a constant of no kind')
  }
}

type Fallback = (frame: Frame, values: readonly unknown[]) => unknown

/** A call with its operands. Makes no array for the usual numbers of operands. */
function callOf(operands: readonly Run[], own: Impl | undefined, library: Library, fallback: Fallback): Run {
  const [first, second, ...more] = operands
  if (own && first && !second) {
    return (frame) => {
      const a = first(frame)
      if (a instanceof Fault) return a
      const value = own(frame, a, undefined, undefined, undefined)
      return value === undefined ? fallback(frame, [a]) : toCel(library, value)
    }
  }
  if (own && first && second && more.length === 0) {
    return (frame) => {
      const a = first(frame)
      if (a instanceof Fault) return a
      const b = second(frame)
      if (b instanceof Fault) return b
      const value = own(frame, a, b, undefined, undefined)
      return value === undefined ? fallback(frame, [a, b]) : toCel(library, value)
    }
  }
  return (frame) => {
    const values: unknown[] = []
    for (const operand of operands) {
      const value = operand(frame)
      if (value instanceof Fault) return value
      values.push(value)
    }
    const value = own?.(frame, values[0], values[1], values[2], values[3])
    return value === undefined ? fallback(frame, values) : toCel(library, value)
  }
}
