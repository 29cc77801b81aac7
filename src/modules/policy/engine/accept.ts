/** Checks a policy as far as it can be checked before traffic flows (D40). */
import { BadPattern, checkPattern } from '../../../lib/patterns/pattern.ts'
import { check } from '../../../lib/shape/check.ts'
import { Type } from '../../../lib/shape/type.ts'
import { nearest } from '../../../lib/text/nearest.ts'
import { Refusal } from '../../../model/errors.ts'
import type { Place, Where } from '../../../model/place.ts'
import { type ActionName, actionNames, actions, isActionName } from './actions.ts'
import { BadExpression } from './cel.ts'
import { checkExpression } from './expression.ts'
import { type Action, listNames, listPath, type Policy, type Rule } from './policy-form.ts'
import { type Direction, directions, type ListNames, phaseOf, placeName, type Site } from './policy-phases.ts'
import { replaceable } from './replace-pattern.ts'
import { type ExpressionSource, expressionsInSource, sources } from './sources.ts'

/** The most bytes of CEL plus instructions of patterns in one policy. Checking more would block the server for a second. */
const MAX_COST = 64 * 1024

/** Throws `BadValue` or `Refusal` unless every rule can run in its place. */
export function checkPolicy(policy: Policy, where: Where): void {
  for (const direction of directions) {
    const rules = policy[direction] ?? []
    if (rules.length === 0) continue
    const path = where.at + listPath(policy, direction)
    checkRules(rules, siteOf(policy, where, direction), path)
    checkLoginNames(rules, path)
  }
  let cost = 0
  for (const source of sources(policy, where.at)) {
    for (const price of pricesOf(source, siteOf(policy, where, source.direction))) {
      cost += price
      if (cost > MAX_COST) {
        throw refuse(
          source.at,
          'makes the expressions and patterns of this policy too large in total; use fewer or shorter ones',
        )
      }
    }
  }
}

function siteOf(policy: Policy, { place, at }: Where, direction: Direction): Site {
  const phase = phaseOf(place, direction)
  if (phase) return { place, phase, lists: listNames(policy) }
  throw refuse(
    at + listPath(policy, direction),
    `takes no rules on ${placeName(place)}, where a policy sees incoming connections only; use \`inbound\``,
  )
}

function checkRules(rules: readonly Rule[], site: Site, at: string): void {
  let end: string | undefined
  for (const [i, rule] of rules.entries()) {
    let endOfRule: string | undefined
    for (const [j, action] of rule.actions.entries()) {
      const path = `${at}[${i}].actions[${j}]`
      if (end !== undefined || endOfRule !== undefined) {
        throw refuse(
          path,
          `is never reached, since \`${endOfRule ?? end}\` always ends the phase; remove one or move it`,
        )
      }
      const type = checkAction(action, site, path)
      if (actions[type].ends) endOfRule = path
    }
    if (rule.expressions.length === 0) end = endOfRule
  }
}

/** A route distinguishes its logins by name: different logins must not share one. Several rules may use one login. */
function checkLoginNames(rules: readonly Rule[], at: string): void {
  const known = new Map<string, string>()
  for (const [i, rule] of rules.entries()) {
    for (const [j, { type, config = {} }] of rule.actions.entries()) {
      const name = isActionName(type) ? actions[type].loginName?.(config) : undefined
      if (name === undefined) continue
      const settings = JSON.stringify([
        type,
        Object.keys(config)
          .sort()
          .map((key) => [key, config[key]]),
      ])
      if ((known.get(name) ?? settings) !== settings) {
        throw refuse(
          `${at}[${i}].actions[${j}].config.auth_id`,
          `is \`${name}\`, the name of an earlier login with other settings; give each login its own name`,
        )
      }
      known.set(name, settings)
    }
  }
}

function checkAction({ type, config }: Action, { place, phase, lists }: Site, at: string): ActionName {
  if (!isActionName(type)) throw refuse(`${at}.type`, unknownAction(type, place))
  const { phases, config: form, refine } = actions[type]
  if (!phases.includes(phase)) {
    throw refuse(`${at}.type`, `is \`${type}\`, which ${misplacedAction(type, place, lists)}`)
  }
  const path = `${at}.config`
  // Checked as an object with the path as its only field, so that messages begin with the path. R-4.10: missing
  // settings are the same as empty ones.
  const checked = check(Type.Object({ [path]: form }), { [path]: config ?? {} })[path]
  refine?.(checked as Record<string, unknown>, path)
  return type
}

function unknownAction(type: string, place: Place): string {
  const refusal = refusalOf(type)
  if (refusal !== undefined) return `is \`${type}\`, which ${refusal}`
  const possible = actionsFor(place)
  const meant = nearest(type, possible)
  const all = `${placeName(place)} has ${possible.map((name) => `\`${name}\``).join(', ')}.`
  const remedy = meant === undefined ? all : `did you mean \`${meant}\`?`
  // The second sentence is that of the vendor's server, which programs look for.
  return `is not a known action; ${remedy} Invalid policy action type '${type.replace(/\p{Cc}/gu, ' ')}'.`
}

function misplacedAction(type: ActionName, place: Place, lists: ListNames): string {
  const { phases } = actions[type]
  if (place !== 'route') {
    const possible = actionsFor(place).map((name) => `\`${name}\``)
    return `needs HTTP; ${placeName(place)} has ${possible.join(', ')}`
  }
  return `works in \`${lists[phases.includes('request') ? 'inbound' : 'outbound']}\` only; move it there`
}

function actionsFor(place: Place): readonly ActionName[] {
  const possible = directions.map((direction) => phaseOf(place, direction))
  return actionNames.filter((name) => actions[name].phases.some((phase) => possible.includes(phase)))
}

/** Prices the parts of a source one by one, so that the caller can stop before the end of one that is too costly. */
function* pricesOf(source: ExpressionSource, site: Site): Generator<number> {
  const { kind, text, at } = source
  try {
    if (kind === 'pattern' && !text.includes('${')) {
      replaceable(text)
      yield checkPattern(text)
    }
    const own = kind === 'retry' ? { ...site, isRetry: true } : site
    const condition = kind === 'condition' || kind === 'retry'
    for (const expression of expressionsInSource(source)) yield checkExpression(expression, own, { condition })
  } catch (cause) {
    if (!(cause instanceof BadExpression || cause instanceof BadPattern)) throw cause
    throw refuse(at, cause.message, cause)
  }
}

function refuse(at: string, what: string, cause?: unknown): Refusal {
  // The part after the colon is a place inside the text of the field.
  return new Refusal('BAD_POLICY', `\`${at}\` ${what}`, { field: at.replace(/:.*/s, ''), cause })
}

/** Each reason follows the name of the action. */
export const refusedActions: Readonly<Record<string, string>> = {
  'forward-internal':
    'is not supported, since there are no internal endpoints here: give the edge or route a `backend` that leads to the service, and paths that go elsewhere a route of their own',
  'terminate-tls':
    'is not supported as a rule: set the module `tls_termination` of a TLS edge, and `mutual_tls` for client certificates',
}

export function refusalOf(type: string): string | undefined {
  return Object.hasOwn(refusedActions, type) ? refusedActions[type] : undefined
}
