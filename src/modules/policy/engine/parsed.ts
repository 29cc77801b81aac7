/** Expressions that were parsed on another thread. */
import { compileProgram, type PatternProgram, programBuffers } from '../../../lib/patterns/pattern-program.ts'
import { compilePatterns, type PatternSearch, searchProgram } from '../../../lib/patterns/pattern-search.ts'
import { parseExpression } from './cel.ts'
import { children, type Expr, literal } from './tree.ts'

/**
 * Plain data that can be sent between threads: the tree as JSON, and the patterns in it as compiled programs. Parsing an
 * expression takes up to 50 ms; reading this takes a few.
 */
export interface PreparedExpression {
  readonly tree: string
  readonly programs: readonly (readonly [pattern: string, program: PatternProgram])[]
}

/** An expression ready to be planned, with the searches for the patterns in it. */
export interface ParsedExpression {
  readonly expr: Expr
  readonly patterns: ReadonlyMap<string, PatternSearch>
}

/** Parses here and now; throws `BadExpression`. */
export function parseHere(text: string): ParsedExpression {
  const expr = parseExpression(text)
  return { expr, patterns: new Map(literalPatterns(expr).map((pattern) => [pattern, compilePatterns([pattern])])) }
}

/** Parses for another thread; throws `BadExpression`. */
export function prepareExpression(text: string): PreparedExpression {
  const expr = parseExpression(text)
  const patterns = [...new Set(literalPatterns(expr))]
  return {
    tree: JSON.stringify(expr, withoutIds),
    programs: patterns.map((pattern) => [pattern, compileProgram([pattern])] as const),
  }
}

/** The buffers to transfer, so that they reach the other thread without a copy. */
export function preparedBuffers({ programs }: PreparedExpression): ArrayBuffer[] {
  return programs.flatMap(([, program]) => programBuffers(program))
}

export function readPrepared({ tree, programs }: PreparedExpression): ParsedExpression {
  const expr = JSON.parse(tree) as Expr // `prepareExpression` wrote it
  restore(expr)
  return { expr, patterns: new Map(programs.map(([pattern, program]) => [pattern, searchProgram(program)])) }
}

/** A JSON replacer: leaves out unused fields, and writes values that JSON does not have as strings. */
function withoutIds(this: unknown, key: string, value: unknown): unknown {
  if (key === 'id' || key === '$typeName' || key === '$unknown') return undefined
  if (typeof value === 'bigint') return String(value)
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64')
  const isDouble = typeof value === 'number' && key === 'value'
  return isDouble ? (Object.is(value, -0) ? '-0' : String(value)) : value
}

/** Turns the constants of a tree back from strings into their own kinds. */
function restore(expr: Expr): void {
  const { exprKind: kind } = expr
  if (kind.case === 'constExpr') {
    const { constantKind: constant } = kind.value
    // Still a string here, as `withoutIds` left it.
    const text = constant.value as unknown as string
    if (constant.case === 'int64Value' || constant.case === 'uint64Value') constant.value = BigInt(text)
    else if (constant.case === 'doubleValue') constant.value = Number(text)
    else if (constant.case === 'bytesValue') constant.value = new Uint8Array(Buffer.from(text, 'base64'))
  }
  for (const child of children(expr)) restore(child)
}

/** The patterns that are literals in calls of `matches`. */
function literalPatterns(expr: Expr): string[] {
  const { exprKind: kind } = expr
  const pattern =
    kind.case === 'callExpr' && kind.value.function === 'matches' ? literal(kind.value.args.at(-1)) : undefined
  return [...(pattern === undefined ? [] : [pattern]), ...children(expr).flatMap(literalPatterns)]
}
