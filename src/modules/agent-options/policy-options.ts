/** Reads the traffic policy of a bind, in either spelling: rules in an object, or in one text of YAML or JSON. */
import { BadValue } from '../../lib/shape/check.ts'
import { refusals } from '../../model/agent-errors.ts'
import { Refusal } from '../../model/errors.ts'
import type { Lookup } from '../module.ts'
import type { PolicySettings } from '../policy/engine/policy.ts'
import { form, type Policy } from '../policy/engine/policy-form.ts'
import { policy, policyMentions } from '../policy/form.ts'
import { trafficPolicy } from '../policy/traffic-policy.ts'
import { plainRules, plainText } from './rules.ts'
import { fieldsOf, isEmpty } from './values.ts'

type Proto = 'http' | 'https' | 'tcp' | 'tls'

/** The settings of the `policy` module, or undefined when there is no rule; throws `BindRefusal`. */
export function readPolicy(value: unknown, name: string, proto: Proto): unknown {
  if (isEmpty(value) || (typeof value === 'string' && isBlank(value))) return undefined
  try {
    return settingsOf(value, name, proto)
  } catch (error) {
    if (!(error instanceof BadValue || error instanceof Refusal)) throw error
    // Programs match the vendor's wording. `value` is our field name; on the wire the text is the option itself.
    const what = error.message.replaceAll(`\`${name}.value`, `\`${name}`)
    throw refusals.badPolicy(`the traffic policy provided is invalid: ${what}`)
  }
}

function settingsOf(value: unknown, name: string, proto: Proto): unknown {
  const place = proto === 'tcp' || proto === 'tls' ? proto : 'route'
  const where = { place, at: `${name}.` } as const
  const config =
    typeof value === 'string'
      ? (trafficPolicy.read({ enabled: true, value: plainText(value) }, where) as Policy) // `read` returns a `Policy`
      : fieldsOf(form, plainRules(value), name)
  const [mention] = policyMentions(config)
  if (mention)
    throw refusals.badPolicy(
      `\`${name}.${mention.field}\` names a resource of the API; an agent's policy cannot do that`,
    )
  const accepted = policy.accept?.(config, where) ?? config
  const { inbound = [], outbound = [] } = accepted
  return inbound.length + outbound.length === 0 ? undefined : policy.resolve(accepted, nothing, place)
}

/** Whether YAML has no content, such as a file whose rules are all commented out. */
function isBlank(text: string): boolean {
  return text.split('\n').every((line) => /^\s*(#.*|---\s*)?$/.test(line))
}

/** D33: where TLS passes through, rules that read the handshake would never run. */
export function refuseBlindPolicy(modules: Readonly<Record<string, unknown>>): void {
  const settings = modules.policy as PolicySettings | undefined // only `readPolicy` puts something there
  if (!settings?.readsHandshake || modules.tls_termination !== undefined || modules.mutual_tls !== undefined) return
  throw refusals.badPolicy(
    'the policy reads fields of the TLS handshake, but TLS passes through this endpoint; terminate it at the edge',
  )
}

const nothing: Lookup = { ipRules: unnamed, authority: unnamed, backend: unnamed }

function unnamed(): never {
  throw new Error('an agent cannot name a resource')
}
