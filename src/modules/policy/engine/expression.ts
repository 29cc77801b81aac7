/** Checks a CEL expression before it runs: whether its variables, fields and functions exist, and its patterns are valid. */
import { BadPattern, checkPattern } from '../../../lib/patterns/pattern.ts'
import { BadExpression, parseWithPositions } from './cel.ts'
import { type Func, functions, macros, methods } from './functions.ts'
import { arithmetic, canContain, canEqual, canOrder, common } from './kinds.ts'
import { newerName } from './older-names.ts'
import type { Site } from './policy-phases.ts'
import {
  any,
  bool,
  brief,
  int,
  type Kind,
  kindName,
  list,
  map,
  member,
  type Shape,
  string,
  unknown,
} from './policy-shape.ts'
import { type Expr, literal, type Node, pathOf } from './tree.ts'
import { variables } from './variables.ts'

/** How deep loops may be nested: `a.all(x, b.all(y, …))`. */
const MAX_LOOPS = 3

interface Scope {
  readonly site: Site
  readonly variables: Readonly<Record<string, Shape>>
  /** The variables of the enclosing loops. */
  readonly locals: ReadonlyMap<string, Shape>
  readonly loops: number
  /** The sizes of all patterns found so far; they count towards the cost. */
  readonly patterns: number[]
}

/** Checks an expression and returns the cost to prepare it; throws `BadExpression`. A `condition` must be a boolean. */
export function checkExpression(text: string, site: Site, { condition }: { condition: boolean }): number {
  const patterns: number[] = []
  const scope: Scope = { site, variables: variables(site), locals: new Map(), loops: 0, patterns }
  const { expr, positionOf } = parseWithPositions(text)
  try {
    const shape = infer(expr, scope)
    if (condition && !maybeBool(shape)) {
      throw new BadExpression(`gives ${kindName(shape)}, but must be true or false; compare it with something`)
    }
  } catch (error) {
    if (!(error instanceof BadExpression) || error.part === undefined) throw error
    throw new BadExpression(`${error.message} (${positionOf(error.part)})`, { cause: error })
  }
  return patterns.reduce((sum, size) => sum + size, Buffer.byteLength(text) + EXPRESSION_COST)
}

/** The part of an expression's cost that does not depend on its length. */
const EXPRESSION_COST = 20

function infer(expr: Expr, scope: Scope): Shape {
  try {
    return inferWhole(expr, scope)
  } catch (error) {
    // The innermost part is set first, and the message is about that one.
    if (error instanceof BadExpression) error.part ??= expr.id
    throw error
  }
}

function inferWhole(expr: Expr, scope: Scope): Shape {
  const { exprKind: kind } = expr
  const later = newerName(expr)
  if (later !== undefined) return variable(later, scope)
  switch (kind.case) {
    case 'constExpr':
      return constant(kind.value.constantKind.case)
    case 'identExpr':
      return identifier(kind.value.name, scope)
    case 'selectExpr':
      return select(kind.value, scope)
    case 'callExpr':
      return call(kind.value, scope)
    case 'listExpr':
      return list(common(kind.value.elements.map((element) => infer(element, scope))))
    case 'structExpr':
      return struct(kind.value, scope)
    case 'comprehensionExpr':
      return loop(kind.value, scope)
    case undefined:
      throw new BadExpression('has an empty part')
  }
}

/** The shape of a variable by its path. */
function variable(path: string, scope: Scope): Shape {
  const [root = '', ...fields] = path.split('.')
  let at = root
  let shape = identifier(root, scope)
  for (const field of fields) {
    shape = member(`\`${at}\``, shape, field)
    at += `.${field}`
  }
  return shape
}

function inferPart(expr: Expr | undefined, scope: Scope): Shape {
  return expr ? infer(expr, scope) : any
}

function constant(kind: string | undefined): Shape {
  return (kind === undefined ? undefined : constants[kind]) ?? any
}

const constants: Readonly<Record<string, Shape>> = {
  boolValue: bool,
  stringValue: string,
  bytesValue: { kind: 'bytes' },
  int64Value: int,
  uint64Value: { kind: 'uint' },
  doubleValue: { kind: 'double' },
  nullValue: { kind: 'null' },
}

/** The names of types are values: `type(x) == string`. */
const typeNames = new Set(['bool', 'bytes', 'double', 'int', 'list', 'map', 'null_type', 'string', 'type', 'uint'])

function identifier(written: string, { locals, variables }: Scope): Shape {
  // A leading dot refers to the name outside all loops.
  const name = written.replace(/^\./, '')
  const local = locals.get(written)
  if (local) return local
  if (typeNames.has(name)) return { kind: 'type' }
  const found = Object.hasOwn(variables, name) ? variables[name] : undefined
  if (!found)
    throw new BadExpression(unknown('variable', name, [...locals.keys(), ...Object.keys(variables)].filter(isWord)))
  if (found.kind === 'absent') throw new BadExpression(`reads \`${name}\`, ${found.why}`)
  return found
}

/** False for the names that the parser makes up for loops, which must not be suggested. */
function isWord(name: string): boolean {
  return !name.startsWith('@')
}

function select({ operand, field, testOnly }: Node<'selectExpr'>, scope: Scope): Shape {
  const shape = member(spell(operand), inferPart(operand, scope), field)
  // `testOnly` is how the parser writes `has(a.b)`.
  return testOnly ? bool : shape
}

function struct({ messageName, entries }: Node<'structExpr'>, scope: Scope): Shape {
  if (messageName !== '') throw new BadExpression(`makes a \`${brief(messageName)}\`, but there are no such types here`)
  const values = entries.map(({ keyKind, value }) => {
    if (keyKind.case === 'mapKey') checkKey(infer(keyKind.value, scope))
    return inferPart(value, scope)
  })
  return map(common(values))
}

function checkKey(shape: Shape): void {
  if (keys.has(shape.kind)) return
  throw new BadExpression(`has ${kindName(shape)} as the key of a map; keys are strings, whole numbers, true or false`)
}

const keys: ReadonlySet<Kind> = new Set(['string', 'int', 'uint', 'bool', 'any'])

const loopable: ReadonlySet<Kind> = new Set(['list', 'map', 'record', 'any'])

/** A loop: the parser turns `all`, `exists`, `exists_one`, `map` and `filter` into this. */
function loop({ iterVar, iterRange, accuVar, accuInit, loopStep }: Node<'comprehensionExpr'>, scope: Scope): Shape {
  const range = inferPart(iterRange, scope)
  if (scope.loops >= MAX_LOOPS) throw new BadExpression(`has over ${MAX_LOOPS} loops inside each other; split it`)
  if (!loopable.has(range.kind))
    throw new BadExpression(`loops over ${kindName(range)}; it can loop over a list or a map`)
  // A loop over a map goes through its keys: names for headers and such, any kind for a map that the expression made.
  const item = range.kind === 'list' ? (range.items ?? any) : range.kind === 'record' ? string : any
  // `map` and `filter` build up a list; the items added to it determine its shape.
  const start: Shape = accuInit?.exprKind.case === 'listExpr' ? { kind: 'list' } : any
  const locals = new Map([...scope.locals, [iterVar, item], [accuVar, start]])
  const step = inferPart(loopStep, { ...scope, locals, loops: scope.loops + 1 })
  if (start.kind !== 'list') return bool
  return step.kind === 'list' ? step : list(any)
}

const logic: Readonly<Record<string, string>> = { '_&&_': '&&', '_||_': '||', '!_': '!' }

function call({ function: name, target, args }: Node<'callExpr'>, scope: Scope): Shape {
  if (name === '_[_]' && !target) return index(args, scope)
  if (name === '_?_:_' && !target) return choice(args, scope)
  if (Object.hasOwn(logic, name)) {
    for (const arg of args) {
      const shape = infer(arg, scope)
      if (!maybeBool(shape))
        throw new BadExpression(`puts ${kindName(shape)} where \`${logic[name]}\` needs a condition`)
    }
    return bool
  }
  if (Object.hasOwn(signs, name)) return signature(name, args, scope)
  const space = namespace(target, scope)
  if (space !== undefined) return apply(`${space}.${name}`, functions, args, scope)
  if (!target) return apply(name, functions, args, scope)
  return apply(name, methods, args, scope, target)
}

/** Binary operators, from the parser's name to the sign. */
const signs: Readonly<Record<string, string>> = {
  '_==_': '==',
  '_!=_': '!=',
  '_<_': '<',
  '_<=_': '<=',
  '_>_': '>',
  '_>=_': '>=',
  '@in': 'in',
  '@not_strictly_false': '',
  '_+_': '+',
  '_-_': '-',
  '_*_': '*',
  '_/_': '/',
  '_%_': '%',
  '-_': '-',
}

function signature(name: string, args: readonly Expr[], scope: Scope): Shape {
  const sign = signs[name] ?? ''
  const [a = any, b = any] = args.map((arg) => infer(arg, scope))
  if (args.length === 1) {
    if (name === '@not_strictly_false') return bool
    if (negatable.has(a.kind)) return a
    throw new BadExpression(`puts \`-\` before ${kindName(a)}, which has no negative`)
  }
  if (sign === '==' || sign === '!=') {
    if (canEqual(a, b)) return bool
    throw new BadExpression(`compares ${kindName(a)} with ${kindName(b)}, which are never equal`)
  }
  if (sign === 'in') {
    if (canContain(a, b)) return bool
    throw new BadExpression(`looks for ${kindName(a)} in ${containerName(b)}, where it can never be`)
  }
  if ('+-*/%'.includes(sign)) {
    const shape = arithmetic(sign, a, b)
    if (shape) return shape
    throw new BadExpression(`puts \`${sign}\` between ${kindName(a)} and ${kindName(b)}; convert one of them`)
  }
  if (canOrder(a, b)) return bool
  throw new BadExpression(`puts \`${sign}\` between ${kindName(a)} and ${kindName(b)}, which have no order`)
}

/** Functions that return lists of strings, and those that return lists with the items of their argument. */
const textLists: ReadonlySet<string> = new Set(['getReqHeader', 'getResHeader', 'getQueryParam', 'split'])
const sameItems: ReadonlySet<string> = new Set(['distinct', 'slice', 'sort'])

const negatable: ReadonlySet<Kind> = new Set(['int', 'double', 'any'])

function containerName(of: Shape): string {
  if (of.kind !== 'list' || !of.items || of.items.kind === 'any') return kindName(of)
  return `a list of which each is ${kindName(of.items)}`
}

/** `base64` in `base64.encode(x)`: a name that only functions have. */
function namespace(target: Expr | undefined, { locals, variables }: Scope): string | undefined {
  if (target?.exprKind.case !== 'identExpr') return undefined
  const { name } = target.exprKind.value
  if (locals.has(name) || Object.hasOwn(variables, name)) return undefined
  return namespaces.has(name) ? name : undefined
}

const namespaces = new Set(Object.keys(functions).flatMap((name) => (name.includes('.') ? [name.split('.')[0]] : [])))

function apply(
  name: string,
  table: Readonly<Record<string, Func>>,
  args: readonly Expr[],
  scope: Scope,
  target?: Expr,
): Shape {
  // The target is checked before the function: if the target does not exist, the message must be about that.
  const on = target && infer(target, scope)
  const func = Object.hasOwn(table, name) ? table[name] : undefined
  if (!func) throw new BadExpression(noFunction(name, table))
  if (func.phases && !func.phases.includes(scope.site.phase)) {
    const where = func.phases.includes('request')
      ? 'on routes of HTTPS edges'
      : `in \`${scope.site.lists.outbound}\` of routes of HTTPS edges`
    throw new BadExpression(`calls \`${name}\`, which is there only ${where}`)
  }
  const [fewest, most] = func.args
  if (args.length < fewest || args.length > most) {
    const wanted = fewest === most ? `${fewest}` : `${fewest} to ${most}`
    throw new BadExpression(`calls \`${name}\` with ${args.length} arguments, but it takes ${wanted}`)
  }
  const shapes = [...(on ? [on] : []), ...args.map((arg) => infer(arg, scope))]
  for (const [i, shape] of shapes.entries()) checkOperand(name, func, shape, on ? i - 1 : i)
  if (name === 'matches') patternArgument(args.at(-1), scope)
  return shapeGiven(name, func, shapes)
}

/** `at` is -1 for the value that a method is called on. */
function checkOperand(name: string, { operands, args: [, most] }: Func, shape: Shape, at: number): void {
  const wanted = operands[at + operands.length - most] ?? []
  const { kind } = shape
  if (kind === 'any' || wanted.includes('any') || wanted.includes(kind === 'record' ? 'map' : kind)) return
  const kinds = wanted.map((each) => kindName({ kind: each })).join(' or ')
  const what = at < 0 ? `on ${kindName(shape)}` : `with ${kindName(shape)}`
  const where = at < 0 || most < 2 ? '' : ` as argument ${at + 1}`
  throw new BadExpression(`calls \`${name}\` ${what}${where}, but it takes ${kinds}`)
}

/** The shape that a function returns, with that of its items where it is known. */
function shapeGiven(name: string, { gives }: Func, [first = any]: readonly Shape[]): Shape {
  if (gives !== 'list') return { kind: gives }
  if (textLists.has(name)) return list(string)
  return list(sameItems.has(name) ? (first.items ?? any) : any)
}

function noFunction(name: string, table: Readonly<Record<string, Func>>): string {
  const usage = Object.hasOwn(macros, name) ? macros[name] : undefined
  if (usage !== undefined) return `calls \`${name}\` in the wrong form; write \`${usage}\``
  if (table === methods && Object.hasOwn(functions, name)) return `calls \`${name}\` on a value; write \`${name}(…)\``
  if (table === functions && Object.hasOwn(methods, name)) return `calls \`${name}\` alone; write \`value.${name}(…)\``
  return unknown('function', name, Object.keys(table))
}

function patternArgument(pattern: Expr | undefined, { patterns }: Scope): void {
  const text = literal(pattern)
  if (text === undefined) return
  try {
    patterns.push(checkPattern(text))
  } catch (cause) {
    if (!(cause instanceof BadPattern)) throw cause
    throw new BadExpression(`has a pattern in \`matches\` that ${cause.message}`, { cause })
  }
}

function index([of, by]: readonly Expr[], scope: Scope): Shape {
  const shape = inferPart(of, scope)
  const at = inferPart(by, scope)
  if (shape.kind === 'list' && !indices.has(at.kind)) {
    throw new BadExpression(`asks a list for ${kindName(at)}; its entries are numbered from 0`)
  }
  if (shape.kind === 'list' || shape.kind === 'map') return shape.items ?? any
  const key = literal(by)
  if (shape.fields && key !== undefined) return member(spell(of), shape, key)
  if (shape.kind === 'record' || shape.kind === 'any') return any
  throw new BadExpression(`asks ${spell(of)} for an entry, but it is ${kindName(shape)}`)
}

const indices: ReadonlySet<Kind> = new Set(['int', 'uint', 'double', 'any'])

function choice([test, yes, no]: readonly Expr[], scope: Scope): Shape {
  const condition = inferPart(test, scope)
  if (!maybeBool(condition)) throw new BadExpression(`puts ${kindName(condition)} where \`?\` needs a condition`)
  const [first, second] = [inferPart(yes, scope), inferPart(no, scope)]
  if (first.kind === second.kind) return first
  if (canEqual(first, second)) return any
  throw new BadExpression(
    `gives ${kindName(first)} or ${kindName(second)}, as \`?\` decides; make both of one kind, or use \`dyn\``,
  )
}

function maybeBool({ kind }: Shape): boolean {
  return kind === 'bool' || kind === 'any'
}

/** An expression as a message names it. */
function spell(expr: Expr | undefined): string {
  const path = pathOf(expr)
  return path === undefined ? 'a value' : `\`${brief(path)}\``
}
