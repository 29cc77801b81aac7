/** The `policy` module: rules that filter, change and answer traffic, with conditions written in CEL. */

import { NEVER_HERE } from '../../lib/patterns/pattern-price.ts'
import { defineModule } from '../module.ts'
import { checkPolicy } from './engine/accept.ts'
import { expressionsIn } from './engine/expressions-in.ts'
import type { PolicySettings } from './engine/policy.ts'
import { form } from './engine/policy-form.ts'
import { policyNeeds } from './needs.ts'
import { policyMentions } from './policy-references.ts'
import { compileTraffic, loadPolicies, trafficSteps } from './traffic.ts'
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
  compile: compileTraffic,
  steps: trafficSteps,
  load: loadPolicies,
  expressions: (settings) => expressionsIn(settings),
})
