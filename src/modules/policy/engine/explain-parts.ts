/** Marks the parts of an expression whose values explain it: the operands of `&&`, `||`, comparisons and calls. */
import { cel } from './cel.ts'
import { type Expr, literal, pathOf } from './tree.ts'

/** The function of a mark; its name cannot be written in source. */
export const NOTE = '@note'

interface Marked {
  readonly expr: Expr
  /** The source of each part, by its number: from the outside in, and from left to right. */
  readonly texts: readonly string[]
}

/**
 * Marks the parts of `source`. `isVariable` distinguishes names of variables from those of functions, such as `base64` in
 * `base64.encode(x)`.
 *
 * A mark is a call around the part that returns its argument. The marked expression is evaluated in the usual way, so the
 * values shown are those that decided the rule. A part that was not evaluated is not shown.
 */
export function markParts(source: string, isVariable: (name: string) => boolean): Marked {
  const parsed = cel().parse(source)
  const texts: string[] = []

  const mark = (part: Expr): Expr => {
    const { case: kind } = part.exprKind
    if (kind === 'constExpr' || kind === undefined) return part
    // The value of a literal is already in the source.
    if (kind === 'listExpr' || kind === 'structExpr') return inside(part)
    const index = texts.push(cel().unparse({ ...parsed, expr: part })) - 1
    return call(part, index, inside(part))
  }

  const markTarget = (target: Expr): Expr => {
    const path = pathOf(target)
    return path !== undefined && !isVariable(path.split('.')[0] ?? '') ? target : mark(target)
  }

  /** The part with the parts inside it marked. In a loop, only the list or map that it runs over is marked. */
  const inside = (part: Expr): Expr => {
    const { exprKind: kind } = part
    switch (kind.case) {
      case 'callExpr': {
        const { function: name, target, args } = kind.value
        const [of, by] = args
        if (name === '_[_]' && of && by) {
          const marked = [inside(of), literal(by) === undefined ? mark(by) : by]
          return { ...part, exprKind: { case: kind.case, value: { ...kind.value, args: marked } } }
        }
        // `a && b && c` has three operands, although the parser nests them.
        const isChain = (arg: Expr): boolean => chained.has(name) && functionOf(arg) === name
        const value = { ...kind.value, args: args.map((arg) => (isChain(arg) ? inside(arg) : mark(arg))) }
        if (target) value.target = markTarget(target)
        return { ...part, exprKind: { case: kind.case, value } }
      }
      case 'selectExpr': {
        const { operand } = kind.value
        const value = { ...kind.value, ...(operand && { operand: inside(operand) }) }
        return { ...part, exprKind: { case: kind.case, value } }
      }
      case 'listExpr':
        return {
          ...part,
          exprKind: { case: kind.case, value: { ...kind.value, elements: kind.value.elements.map(inside) } },
        }
      case 'comprehensionExpr': {
        const { iterRange } = kind.value
        const value = { ...kind.value, ...(iterRange && { iterRange: mark(iterRange) }) }
        return { ...part, exprKind: { case: kind.case, value } }
      }
      case 'structExpr':
      case 'constExpr':
      case 'identExpr':
      case undefined:
        return part
    }
  }

  return { expr: inside(parsed.expr), texts }
}

const chained: ReadonlySet<string> = new Set(['_&&_', '_||_', '_+_', '_*_'])

function functionOf({ exprKind: kind }: Expr): string | undefined {
  return kind.case === 'callExpr' ? kind.value.function : undefined
}

function call(like: Expr, index: number, part: Expr): Expr {
  const number = { $typeName: 'cel.expr.Constant', constantKind: { case: 'stringValue', value: String(index) } }
  const value = {
    $typeName: 'cel.expr.Expr.Call',
    function: NOTE,
    args: [{ ...like, exprKind: { case: 'constExpr', value: number } }, part],
  }
  // The same object that the parser would have made for such a call.
  return { ...like, exprKind: { case: 'callExpr', value } } as unknown as Expr
}
