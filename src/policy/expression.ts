/** Checks a CEL expression against what will be there when it runs: its variables, fields, functions and patterns. */
import { BadPattern, checkPattern } from '../lib/pattern.ts'
import { BadExpression, parseExpression } from './cel.ts'
import { type Func, functions, macros, methods } from './functions.ts'
import { newerName } from './older-names.ts'
import type { Site } from './phases.ts'
import {
  any,
  bool,
  brief,
  type Kind,
  kindName,
  list,
  map,
  member,
  number,
  type Shape,
  string,
  unknown,
} from './shape.ts'
import { type Expr, literal, type Node, pathOf } from './tree.ts'
import { variables } from './variables.ts'

/** Loops inside each other: `a.all(x, b.all(y, …))`. */
const MAX_LOOPS = 3

interface Scope {
  readonly site: Site
  readonly variables: Readonly<Record<string, Shape>>
  /** What the loops around have bound. */
  readonly locals: ReadonlyMap<string, Shape>
  readonly loops: number
  /** The sizes of all patterns met, for whoever adds them up. */
  readonly patterns: number[]
}

/** What an expression costs to prepare; throws `BadExpression`. A `condition` must be true or false. */
export function checkExpression(text: string, site: Site, { condition }: { condition: boolean }): number {
  const patterns: number[] = []
  const scope: Scope = { site, variables: variables(site), locals: new Map(), loops: 0, patterns }
  const shape = infer(parseExpression(text), scope)
  if (condition && !maybeBool(shape)) {
    throw new BadExpression(`gives ${kindName(shape)}, but must be true or false; compare it with something`)
  }
  return patterns.reduce((sum, size) => sum + size, Buffer.byteLength(text) + EXPRESSION_COST)
}

/** The part of an expression's cost that does not depend on its length. */
const EXPRESSION_COST = 20

function infer(expr: Expr, scope: Scope): Shape {
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
      for (const element of kind.value.elements) infer(element, scope)
      return list(any)
    case 'structExpr':
      return struct(kind.value, scope)
    case 'comprehensionExpr':
      return loop(kind.value, scope)
    case undefined:
      throw new BadExpression('has an empty part')
  }
}

/** A variable by its path, for an older name of it. */
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
  if (kind === 'boolValue') return bool
  if (kind === 'stringValue') return string
  if (kind === 'int64Value' || kind === 'uint64Value' || kind === 'doubleValue') return number
  return { kind: 'value' }
}

/** The names of types are values: `type(x) == string`. */
const typeNames = new Set(['bool', 'bytes', 'double', 'int', 'list', 'map', 'null_type', 'string', 'type', 'uint'])

function identifier(written: string, { locals, variables }: Scope): Shape {
  // A leading dot means the name outside all loops.
  const name = written.replace(/^\./, '')
  const local = locals.get(written)
  if (local) return local
  if (typeNames.has(name)) return { kind: 'value' }
  const found = Object.hasOwn(variables, name) ? variables[name] : undefined
  if (!found)
    throw new BadExpression(unknown('variable', name, [...locals.keys(), ...Object.keys(variables)].filter(isWord)))
  if (found.kind === 'absent') throw new BadExpression(`reads \`${name}\`, ${found.why}`)
  return found
}

/** The parser's own names for its loops are no suggestion. */
function isWord(name: string): boolean {
  return !name.startsWith('@')
}

function select({ operand, field, testOnly }: Node<'selectExpr'>, scope: Scope): Shape {
  const shape = member(spell(operand), inferPart(operand, scope), field)
  // What `has(a.b)` becomes.
  return testOnly ? bool : shape
}

function struct({ messageName, entries }: Node<'structExpr'>, scope: Scope): Shape {
  if (messageName !== '') throw new BadExpression(`makes a \`${brief(messageName)}\`, but there are no such types here`)
  for (const { keyKind, value } of entries) {
    if (keyKind.case === 'mapKey') infer(keyKind.value, scope)
    inferPart(value, scope)
  }
  return map(any)
}

const loopable: ReadonlySet<Kind> = new Set(['list', 'map', 'value', 'any'])

/** What `all`, `exists`, `exists_one`, `map` and `filter` become. */
function loop({ iterVar, iterRange, accuVar, accuInit, loopStep }: Node<'comprehensionExpr'>, scope: Scope): Shape {
  const range = inferPart(iterRange, scope)
  if (scope.loops >= MAX_LOOPS) throw new BadExpression(`has over ${MAX_LOOPS} loops inside each other; split it`)
  if (!loopable.has(range.kind))
    throw new BadExpression(`loops over ${kindName(range)}; it can loop over a list or a map`)
  const item = range.kind === 'list' ? (range.items ?? any) : range.kind === 'map' ? string : any
  const locals = new Map([...scope.locals, [iterVar, item], [accuVar, any]])
  inferPart(loopStep, { ...scope, locals, loops: scope.loops + 1 })
  return accuInit?.exprKind.case === 'listExpr' ? list(any) : bool
}

const operators: Readonly<Record<string, Kind>> = {
  '_==_': 'bool',
  '_!=_': 'bool',
  '_<_': 'bool',
  '_<=_': 'bool',
  '_>_': 'bool',
  '_>=_': 'bool',
  '@in': 'bool',
  '@not_strictly_false': 'bool',
  '_+_': 'value',
  '_-_': 'value',
  '_*_': 'number',
  '_/_': 'number',
  '_%_': 'number',
  '-_': 'number',
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
  const operator = Object.hasOwn(operators, name) ? operators[name] : undefined
  if (operator) {
    for (const arg of args) infer(arg, scope)
    return { kind: operator }
  }
  const space = namespace(target, scope)
  if (space !== undefined) return apply(`${space}.${name}`, functions, args, scope)
  if (!target) return apply(name, functions, args, scope)
  infer(target, scope)
  return apply(name, methods, args, scope)
}

/** `base64` in `base64.encode(x)`: a name that only functions have. */
function namespace(target: Expr | undefined, { locals, variables }: Scope): string | undefined {
  if (target?.exprKind.case !== 'identExpr') return undefined
  const { name } = target.exprKind.value
  if (locals.has(name) || Object.hasOwn(variables, name)) return undefined
  return namespaces.has(name) ? name : undefined
}

const namespaces = new Set(Object.keys(functions).flatMap((name) => (name.includes('.') ? [name.split('.')[0]] : [])))

function apply(name: string, table: Readonly<Record<string, Func>>, args: readonly Expr[], scope: Scope): Shape {
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
  for (const arg of args) infer(arg, scope)
  if (name === 'matches') patternArgument(args.at(-1), scope)
  return { kind: func.gives }
}

function noFunction(name: string, table: Readonly<Record<string, Func>>): string {
  const usage = Object.hasOwn(macros, name) ? macros[name] : undefined
  if (usage !== undefined) return `calls \`${name}\` in a way it cannot be; write \`${usage}\``
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
  inferPart(by, scope)
  if (shape.kind === 'list' || shape.kind === 'map') return shape.items ?? any
  const key = literal(by)
  return shape.kind === 'record' && key !== undefined ? member(spell(of), shape, key) : any
}

function choice([test, yes, no]: readonly Expr[], scope: Scope): Shape {
  const condition = inferPart(test, scope)
  if (!maybeBool(condition)) throw new BadExpression(`puts ${kindName(condition)} where \`?\` needs a condition`)
  const [first, second] = [inferPart(yes, scope), inferPart(no, scope)]
  if (first.kind === second.kind) return { kind: first.kind }
  return maybeBool(first) || maybeBool(second) ? any : { kind: 'value' }
}

function maybeBool({ kind }: Shape): boolean {
  return kind === 'bool' || kind === 'any'
}

/** An expression as a message names it. */
function spell(expr: Expr | undefined): string {
  const path = pathOf(expr)
  return path === undefined ? 'a value' : `\`${brief(path)}\``
}
