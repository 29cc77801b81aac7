/** The tree that CEL source is parsed into, and functions that read it. */

export type Cel = typeof import('@bufbuild/cel')
export type Expr = ReturnType<Cel['parse']>['expr']
export type Node<Case> = Extract<Expr['exprKind'], { case: Case }>['value']

/** The parts of an expression. */
export function children(expr: Expr): readonly Expr[] {
  const { exprKind: kind } = expr
  switch (kind.case) {
    case 'selectExpr':
      return present([kind.value.operand])
    case 'callExpr':
      return present([kind.value.target, ...kind.value.args])
    case 'listExpr':
      return kind.value.elements
    case 'structExpr':
      return present(
        kind.value.entries.flatMap((e) => [e.keyKind.case === 'mapKey' ? e.keyKind.value : undefined, e.value]),
      )
    case 'comprehensionExpr': {
      const { iterRange, accuInit, loopCondition, loopStep, result } = kind.value
      return present([iterRange, accuInit, loopCondition, loopStep, result])
    }
    case 'constExpr':
    case 'identExpr':
    case undefined:
      return []
  }
}

/** The path that an expression reads, such as `conn.tls.sni` for `conn['tls'].sni`; undefined for any other expression. */
export function pathOf(expr: Expr | undefined): string | undefined {
  if (expr?.exprKind.case === 'identExpr') return expr.exprKind.value.name.replace(/^\./, '')
  if (expr?.exprKind.case === 'selectExpr') return joinPath(expr.exprKind.value.operand, expr.exprKind.value.field)
  if (expr?.exprKind.case === 'callExpr' && expr.exprKind.value.function === '_[_]') {
    const [of, by] = expr.exprKind.value.args
    return joinPath(of, literal(by))
  }
  return undefined
}

function joinPath(of: Expr | undefined, name: string | undefined): string | undefined {
  const path = pathOf(of)
  return path === undefined || name === undefined ? undefined : `${path}.${name}`
}

/** The name, such as `a.b`, of an expression that is only a name. */
export function qualifiedName(expr: Expr): string | undefined {
  const { exprKind: kind } = expr
  if (kind.case === 'identExpr') return kind.value.name
  if (kind.case !== 'selectExpr' || kind.value.testOnly || !kind.value.operand) return undefined
  const before = qualifiedName(kind.value.operand)
  return before === undefined ? undefined : `${before}.${kind.value.field}`
}

/** The text of a string literal. */
export function literal(expr: Expr | undefined): string | undefined {
  if (expr?.exprKind.case !== 'constExpr') return undefined
  const { constantKind } = expr.exprKind.value
  return constantKind.case === 'stringValue' ? constantKind.value : undefined
}

function present(parts: readonly (Expr | undefined)[]): readonly Expr[] {
  return parts.filter((part) => part !== undefined)
}
