/** Prepares the tree of a checked expression for planning. */
import { newerArguments, newerName } from './older-names.ts'
import type { Shape } from './policy-shape.ts'
import { type Expr, literal } from './tree.ts'

/** Prefix of a path for which the expression only checks whether it exists. */
export const HAS = '@has '

interface BoundVariables {
  readonly expr: Expr
  /** The paths of variables that it reads, some with `HAS` before them. */
  readonly paths: readonly string[]
}

/**
 * Each known path becomes one name, since here even strings have fields: `req.url` is a string, and `req.url.path` a part of
 * it.
 */
export function bindVariables(expr: Expr, variables: Readonly<Record<string, Shape>>): BoundVariables {
  const paths = new Set<string>()

  const variable = (path: string): Expr => {
    paths.add(path)
    return { ...expr, exprKind: identifier(path) }
  }

  const bind = (part: Expr, locals: ReadonlySet<string>): Expr => {
    const path = pathIn(part, variables, locals)
    if (path !== undefined) return variable(path)
    const each = (child: Expr): Expr => bind(child, locals)
    const maybe = (child: Expr | undefined): Expr | undefined => child && each(child)
    const { exprKind: kind } = part
    switch (kind.case) {
      case 'selectExpr': {
        const { operand, testOnly, field } = kind.value
        const of = testOnly && operand ? pathIn(operand, variables, locals) : undefined
        if (of !== undefined && shapeAt(of, variables)?.fields) return variable(`${HAS}${of}.${field}`)
        return with_(part, { case: kind.case, value: { ...kind.value, operand: maybe(operand) } })
      }
      case 'callExpr':
        return with_(part, {
          case: kind.case,
          value: { ...kind.value, target: maybe(kind.value.target), args: newerArguments(kind.value).map(each) },
        })
      case 'listExpr':
        return with_(part, { case: kind.case, value: { ...kind.value, elements: kind.value.elements.map(each) } })
      case 'structExpr':
        return with_(part, {
          case: kind.case,
          value: {
            ...kind.value,
            entries: kind.value.entries.map((entry) => ({
              ...entry,
              keyKind:
                entry.keyKind.case === 'mapKey'
                  ? { case: 'mapKey' as const, value: each(entry.keyKind.value) }
                  : entry.keyKind,
              value: maybe(entry.value),
            })),
          },
        })
      case 'comprehensionExpr': {
        const { iterVar, accuVar, iterRange, accuInit, loopCondition, loopStep, result } = kind.value
        const inside = new Set([...locals, iterVar, accuVar])
        return with_(part, {
          case: kind.case,
          value: {
            ...kind.value,
            iterRange: maybe(iterRange),
            accuInit: maybe(accuInit),
            loopCondition: loopCondition && bind(loopCondition, inside),
            loopStep: loopStep && bind(loopStep, inside),
            result: result && bind(result, inside),
          },
        })
      }
      case 'constExpr':
      case 'identExpr':
      case undefined:
        return part
    }
  }

  return { expr: bind(expr, new Set()), paths: [...paths] }
}

/** The path, such as `req.url.path`, that an expression reads; it ends where fields are unknown, and at a map or list. */
function pathIn(
  expr: Expr,
  variables: Readonly<Record<string, Shape>>,
  locals: ReadonlySet<string>,
): string | undefined {
  const { exprKind: kind } = expr
  if (kind.case === 'identExpr') {
    const name = kind.value.name.replace(/^\./, '')
    // A leading dot refers to the name outside all loops.
    const isLocal = locals.has(kind.value.name)
    return !isLocal && Object.hasOwn(variables, name) ? name : undefined
  }
  const [of, field] =
    kind.case === 'selectExpr' && !kind.value.testOnly
      ? [kind.value.operand, kind.value.field]
      : kind.case === 'callExpr' && kind.value.function === '_[_]'
        ? [kind.value.args[0], literal(kind.value.args[1])]
        : []
  if (!of || field === undefined) return undefined
  const later = newerName(expr)
  if (later !== undefined && rootOf(expr, locals) !== undefined) return later
  const path = pathIn(of, variables, locals)
  const fields = path === undefined ? undefined : shapeAt(path, variables)?.fields
  return fields && Object.hasOwn(fields, field) ? `${path}.${field}` : undefined
}

/** The variable that a path begins with, unless a loop bound that name. */
function rootOf(expr: Expr, locals: ReadonlySet<string>): string | undefined {
  const { exprKind: kind } = expr
  if (kind.case === 'identExpr') return locals.has(kind.value.name) ? undefined : kind.value.name
  const of = kind.case === 'selectExpr' ? kind.value.operand : kind.case === 'callExpr' ? kind.value.args[0] : undefined
  return of && rootOf(of, locals)
}

function shapeAt(path: string, variables: Readonly<Record<string, Shape>>): Shape | undefined {
  const [root = '', ...fields] = path.split('.')
  let shape = Object.hasOwn(variables, root) ? variables[root] : undefined
  for (const field of fields)
    shape = shape?.fields && Object.hasOwn(shape.fields, field) ? shape.fields[field] : undefined
  return shape
}

function with_(expr: Expr, exprKind: Expr['exprKind']): Expr {
  return { ...expr, exprKind }
}

function identifier(name: string): Expr['exprKind'] {
  return { case: 'identExpr', value: { $typeName: 'cel.expr.Expr.Ident', name } }
}
