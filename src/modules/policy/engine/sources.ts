/** Finds every piece of CEL and every pattern in a policy. */
import type { SourceKind } from './action.ts'
import { actions, isActionName } from './actions.ts'
import { pieces } from './interpolation.ts'
import { listPath, type Policy } from './policy-form.ts'
import { type Direction, directions } from './policy-phases.ts'
import { brief } from './policy-shape.ts'

/** A `condition` is CEL that gives true or false. */
export interface ExpressionSource {
  readonly kind: 'condition' | SourceKind
  readonly text: string
  /** The path of its field. */
  readonly at: string
  readonly direction: Direction
}

/** The sources of a policy in order; assumes nothing beyond the form about values, so they need not be checked yet. */
export function* sources(policy: Policy, at: string): Generator<ExpressionSource> {
  for (const direction of directions) {
    for (const [i, rule] of entries(policy[direction])) {
      const path = `${at}${listPath(policy, direction)}[${i}]`
      for (const { text, at } of strings(rule.expressions, `${path}.expressions`)) {
        yield { kind: 'condition', text, at, direction }
      }
      for (const [j, action] of entries(rule.actions)) {
        yield* actionSources(action, `${path}.actions[${j}].config`, direction)
      }
    }
  }
}

function* actionSources(
  action: Record<string, unknown>,
  at: string,
  direction: Direction,
): Generator<ExpressionSource> {
  const { type, config } = action
  if (typeof type !== 'string' || !isActionName(type) || !isRecord(config)) return
  for (const [field, kind] of Object.entries(actions[type].sources ?? {})) {
    for (const found of strings(config[field], `${at}.${field}`)) yield { kind, direction, ...found }
  }
}

/** The expressions in a source one by one; throws `BadExpression` at a `${` that is not closed. */
export function* expressionsInSource({ kind, text }: Pick<ExpressionSource, 'kind' | 'text'>): Generator<string> {
  // No default: a new kind must say here which text is parsed, or it would be parsed while visitors wait.
  switch (kind) {
    case 'condition':
    case 'value':
    case 'retry':
      return yield text
    case 'template':
    case 'pattern':
      for (const piece of pieces(text)) if ('expression' in piece) yield piece.expression
  }
}

/** The strings in a value, at any depth. */
function* strings(value: unknown, at: string): Generator<{ readonly text: string; readonly at: string }> {
  if (typeof value === 'string') yield { text: value, at }
  else if (Array.isArray(value)) for (const [i, each] of value.entries()) yield* strings(each, `${at}[${i}]`)
  else if (isRecord(value)) {
    for (const [key, each] of Object.entries(value)) yield* strings(each, `${at}[${JSON.stringify(brief(key))}]`)
  }
}

function entries(value: unknown): readonly (readonly [number, Record<string, unknown>])[] {
  if (!Array.isArray(value)) return []
  return [...value.entries()].filter((entry) => isRecord(entry[1]))
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
