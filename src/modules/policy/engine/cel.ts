/** Parses CEL source into a tree, with limits that keep hostile source from hurting the parser or code that walks the tree. */
import { createRequire } from 'node:module'
import { isOpenString, nesting, tokens } from './cel-tokens.ts'
import { type Cel, children, type Expr } from './tree.ts'

/** An expression that is refused. The message continues a sentence that began with the field's path. */
export class BadExpression extends Error {
  /** The part of the expression that is wrong, where that is known. */
  part: bigint | undefined
}

/** The deepest nesting of brackets; the parser recurses some twenty calls for each. */
const MAX_NESTING = 32
/** The most tokens: 4 KiB of operators alone would keep the parser busy for 50 ms. */
const MAX_TOKENS = 1500
/** The most levels of the tree, such as the fields of a chain or the terms of a sum. */
const MAX_DEPTH = 100

/** The CEL library. Loading it takes 100 ms, so it is done on first use: some commands only read the tables of this room. */
export function cel(): Cel {
  return require('@bufbuild/cel') as Cel
}

const require = createRequire(import.meta.url)

/** The tree of `text`, at most `MAX_DEPTH` deep; throws `BadExpression`. */
export function parseExpression(text: string): Expr {
  return parseWithPositions(text).expr
}

/** The tree of `text`, with a function that returns the line and column of one of its parts. */
export function parseWithPositions(text: string): {
  readonly expr: Expr
  readonly positionOf: (part: bigint) => string
} {
  guard(text)
  const { expr, sourceInfo } = parse(text)
  if (isDeep(expr)) throw new BadExpression(`is nested too deep (over ${MAX_DEPTH} levels); split it`)
  const positionOf = (part: bigint): string => {
    const near = sourceInfo?.positions[String(part)] ?? 0
    // For some operators the parser gives the position of the spaces before them.
    const at = near + (/^\s*/.exec(text.slice(near))?.[0].length ?? 0)
    const lines = text.slice(0, at).split('\n')
    return `line ${lines.length}, column ${(lines.at(-1) ?? '').length + 1}`
  }
  return { expr, positionOf }
}

function guard(text: string): void {
  let count = 0
  let depth = 0
  for (const token of tokens(text)) {
    if (isOpenString(token)) throw new BadExpression(`has a string that is not closed at column ${token.start + 1}`)
    if (++count > MAX_TOKENS) throw new BadExpression(`has over ${MAX_TOKENS} words and signs; split it`)
    depth += nesting(token)
    if (depth > MAX_NESTING) throw new BadExpression(`has over ${MAX_NESTING} brackets inside each other; split it`)
    if (depth < 0) throw new BadExpression(`closes a bracket at column ${token.start + 1} that was not opened`)
  }
  if (depth > 0) throw new BadExpression(`leaves ${depth} ${depth === 1 ? 'bracket' : 'brackets'} open; close them`)
}

function parse(text: string): ReturnType<Cel['parse']> {
  try {
    return cel().parse(text)
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    const [, line, column, what = reason] = /^<input>:(\d+):(\d+): (.*)$/s.exec(reason) ?? []
    // Leaves out the parser's list of all tokens that it would have accepted: it is long and useless.
    const brief = what.replace(/^found (.*) but expecting.*$/s, 'unexpected $1').slice(0, 100)
    const why = line === undefined ? brief : `${brief} at line ${line}, column ${column}`
    throw new BadExpression(`is not a CEL expression: ${why}`, { cause })
  }
}

/** Without recursion, since the depth of the tree is not known yet. */
function isDeep(expr: Expr): boolean {
  let level: readonly Expr[] = [expr]
  for (let depth = 0; depth < MAX_DEPTH; depth++) {
    level = level.flatMap(children)
    if (level.length === 0) return false
  }
  return true
}
