/** The `policy` module: rules that filter, change and answer traffic, with conditions written in CEL. */

import { NEVER_HERE } from '../../lib/patterns/pattern-price.ts'
import { defineModule, type Mention, type ModuleConfig, type Needs } from '../module.ts'
import { checkPolicy } from './engine/accept.ts'
import { actions, isActionName } from './engine/actions.ts'
import { BadExpression } from './engine/cel.ts'
import { type Token, tokens } from './engine/cel-tokens.ts'
import type { PolicySettings } from './engine/policy.ts'
import { form, listPath, type Policy } from './engine/policy-form.ts'
import { directions } from './engine/policy-phases.ts'
import { type ExpressionSource, expressionsInSource, sources } from './engine/sources.ts'
import { trafficPolicy } from './traffic-policy.ts'

export const policy = defineModule({
  name: 'policy',
  about: 'Runs rules on traffic: each has CEL expressions that say when it applies, and actions that are then taken.',
  at: { tcp: form, tls: form, route: form },
  needs: policyNeeds,
  mentions: { kinds: ['ip_policy'], find: policyMentions },
  // Rules may hold credentials and webhook secrets, and so may the text that they were read from.
  secrets: ['inbound', 'outbound', 'written'],
  spellings: [trafficPolicy],
  accept: (config, where) => {
    checkPolicy(config, where)
    return config
  },
  price: () => NEVER_HERE,
  resolve: (config, lookup, place): PolicySettings => ({
    place,
    inbound: config.inbound ?? [],
    outbound: config.outbound ?? [],
    ipPolicies: Object.fromEntries(policyMentions(config).map(({ id }) => [id, lookup.ipRules(id)])),
    readsHandshake: place === 'tls' && policyNeeds(config) !== 'bytes',
  }),
})

/** Whether a rule of this configuration logs visitors in. */
export function hasLogins(config: ModuleConfig): boolean {
  const { inbound = [] } = config as Policy // what is stored was accepted by the module
  return inbound.some((rule) => rule.actions.some(({ type }) => isActionName(type) && actions[type].loginName))
}

/** The IP policies that `restrict-ips` actions name, and where. */
export function policyMentions(policy: Policy): Mention[] {
  return directions.flatMap((direction) =>
    (policy[direction] ?? []).flatMap(({ actions }, i) =>
      actions.flatMap(({ type, config }, j) => {
        const ids = type === 'restrict-ips' ? config?.ip_policies : undefined
        if (!Array.isArray(ids)) return []
        const at = `${listPath(policy, direction)}[${i}].actions[${j}].config.ip_policies`
        return ids.map((id, k) => ({ field: `${at}[${k}]`, id: String(id), kinds: ['ip_policy'] }))
      }),
    ),
  )
}

/**
 * How deep a policy looks into the traffic of its edge.: the name that a visitor asks for is sent in the clear; all else of `conn.tls` is known only to the end of the
 * handshake. Used for TLS edges; on routes TLS always ends at the edge.
 */
function policyNeeds(policy: Policy): Needs {
  if (!policy.enabled) return 'bytes'
  for (const source of sources(policy, '')) if (readsTls(source)) return 'plaintext'
  return 'bytes'
}

/**
 * Looks at the tokens only, which is cheap: this runs inside transactions, where CEL must not be parsed. An expression with
 * an unusual spelling may count as reading more.
 */
function readsTls(source: ExpressionSource): boolean {
  try {
    for (const expression of expressionsInSource(source)) if (namesTls(expression)) return true
    return false
  } catch (error) {
    // A template that cannot be read cannot run; `accept` refuses it.
    if (error instanceof BadExpression) return false
    throw error
  }
}

function namesTls(text: string): boolean {
  if (!text.includes('conn')) return false
  const words = [...tokens(text)]
  return words.some((word, i) => word.text === 'conn' && !isField(words, i) && isTls(path(words, i + 1)))
}

/** Whether the word at `i` is a field of the value before it. With nothing before the dot, it is the variable itself. */
function isField(words: readonly Token[], i: number): boolean {
  const before = words[i - 2]?.text ?? ''
  return words[i - 1]?.text === '.' && before !== 'in' && /[\w)\]}"'`]$/.test(before)
}

/** Reading all of `conn` or of `conn.tls` reads the handshake too. */
function isTls([first, second]: readonly string[]): boolean {
  if (first === undefined) return true
  return first === 'tls' && second !== 'sni'
}

/** The next two fields that are read from `i` on, if they are written plainly: `.tls.sni`, `["tls"]["sni"]`. */
function path(words: readonly Token[], i: number): readonly string[] {
  const text = (at: number): string => words[at]?.text ?? ''
  const names: string[] = []
  for (let at = i; names.length < 2; ) {
    if (text(at) === '.' && /^\w+$/.test(text(at + 1)) && text(at + 2) !== '(') {
      names.push(text(at + 1))
      at += 2
    } else if (text(at) === '[' && /^["']\w+["']$/.test(text(at + 1)) && text(at + 2) === ']') {
      names.push(text(at + 1).slice(1, -1))
      at += 3
    } else break
  }
  return names
}
