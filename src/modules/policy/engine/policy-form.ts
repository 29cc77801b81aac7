/** The request form of a traffic policy. */
import type { Static } from 'typebox'
import { Type } from '../../../lib/shape/type.ts'
import { enabled } from '../../../model/fields.ts'
import { closedObject } from './phase-settings.ts'
import { type Direction, type ListNames, ownLists } from './policy-phases.ts'

/** */
const MAX_RULES = 100
const MAX_EXPRESSIONS = 20
const MAX_ACTIONS = 20
const MAX_EXPRESSION_BYTES = 4096

const action = closedObject({
  type: Type.String({ minLength: 1, maxBytes: 64, description: 'What to do, such as `deny` or `add-headers`.' }),
  config: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), {
      maxProperties: 20,
      maxKeyBytes: 64,
      description: 'Settings of the action; they depend on `type`.',
    }),
  ),
})

const rule = closedObject({
  name: Type.String({ default: '', maxBytes: 255, description: 'Name of the rule, shown in logs.' }),
  expressions: Type.Array(Type.String({ minLength: 1, maxBytes: MAX_EXPRESSION_BYTES }), {
    default: [],
    maxItems: MAX_EXPRESSIONS,
    description: 'CEL expressions that must all be true for the rule to apply; with none it always applies.',
  }),
  actions: Type.Array(action, {
    minItems: 1,
    maxItems: MAX_ACTIONS,
    'x-or-one': true,
    description: 'What to do, in order, when the rule applies. A single object counts as a list of one.',
  }),
})

export const ruleList = (description: string) =>
  Type.Optional(Type.Array(rule, { maxItems: MAX_RULES, 'x-or-one': true, description }))

export const form = closedObject({
  enabled,
  inbound: ruleList('Rules for what comes in, run in order: requests of a route, connections of a TCP or TLS edge.'),
  outbound: ruleList('Rules for what goes out, run in order: responses of a route. TCP and TLS edges have none.'),
})

export type Policy = Static<typeof form> & { readonly written?: Written }
export type Rule = Static<typeof rule>
export type Action = Static<typeof action>

/** The text that a policy was read from, kept so that it is returned unchanged, and its names for the rule lists. */
interface Written {
  readonly text: string
  readonly lists: ListNames
}

export function listNames({ written }: Pick<Policy, 'written'>): ListNames {
  return written?.lists ?? ownLists
}

/** The path of a rule list as the policy's author knows it; the part after the colon is a place inside the text. */
export function listPath(policy: Pick<Policy, 'written'>, direction: Direction): string {
  return policy.written ? `value: ${listNames(policy)[direction]}` : direction
}
