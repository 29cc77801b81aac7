/** The `policy` module: rules that filter, change and answer traffic, with conditions written in CEL. */

import { NEVER_HERE } from '../../lib/patterns/pattern-price.ts'
import { defineModule, type ModuleConfig } from '../module.ts'
import { checkPolicy } from './engine/accept.ts'
import { isActionName } from './engine/action-names.ts'
import { actions } from './engine/actions.ts'
import type { PolicySettings } from './engine/policy.ts'
import { form, type Policy } from './engine/policy-form.ts'
import { policyNeeds } from './needs.ts'
import { policyMentions } from './policy-references.ts'
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
