/** Reads the traffic policy of a bind, in either spelling: rules in an object, or in one text of YAML or JSON. */
import { BadValue } from '../../lib/shape/check.ts'
import { BadJson, MAX_JSON_VALUES, parseJson } from '../../lib/text/json.ts'
import { refusals } from '../../model/agent-errors.ts'
import { Refusal } from '../../model/errors.ts'
import type { PolicySettings } from '../policy/engine/policy.ts'
import { form, type Policy } from '../policy/engine/policy-form.ts'
import { policy, policyMentions } from '../policy/form.ts'
import { trafficPolicy } from '../policy/traffic-policy.ts'
import { type BindProto, fieldsOf, isEmpty, nothing } from './values.ts'

/** The settings of the `policy` module, or undefined when there is no rule; throws `BindRefusal`. */
export function readPolicy(value: unknown, name: string, proto: BindProto): unknown {
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

function settingsOf(value: unknown, name: string, proto: BindProto): unknown {
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

/** The depth limit is that of policy texts. */
const bounds = { maxDepth: 32, maxValues: MAX_JSON_VALUES }

/**
 * Brings the rules of a bind into one form: the libraries that agents are built with write them in several. Rules in a text.
 * The Rust library spells the names `Inbound`, `Actions` and so on.
 */
function plainText(text: string): string {
  if (!/^\s*\{\s*"(In|Out)bound"/.test(text)) return text
  const document = json(Buffer.from(text))
  return document === undefined ? text : JSON.stringify(lists(document, {}))
}

/** Rules in an object, as older Go libraries send them: the settings of an action are JSON in base64. */
function plainRules(value: unknown): unknown {
  const decoded = (config: unknown): unknown => {
    const settings = typeof config === 'string' ? json(Buffer.from(config, 'base64')) : undefined
    return settings === undefined ? config : settings
  }
  return lists(value, { config: decoded })
}

type Inside = Readonly<Record<string, (value: unknown) => unknown>>

function lists(document: unknown, ofAction: Inside): unknown {
  const rules = (value: unknown): unknown => lowered(value, { actions: (actions) => lowered(actions, ofAction) })
  return lowered(document, { inbound: rules, outbound: rules })
}

/** Objects with field names in lower case. One with two spellings of a name stays as it is, and is refused later. */
function lowered(value: unknown, inside: Inside): unknown {
  if (Array.isArray(value)) return value.map((each: unknown) => lowered(each, inside))
  if (typeof value !== 'object' || value === null) return value
  const fields = Object.entries(value).map(([name, each]) => [name.toLowerCase(), each] as const)
  if (new Set(fields.map(([name]) => name)).size < fields.length) return value
  return Object.fromEntries(
    fields.map(([name, each]) => [name, Object.hasOwn(inside, name) ? inside[name]?.(each) : each]),
  )
}

/** Undefined when it is not JSON; the check that follows says what is wrong. */
function json(bytes: Buffer): unknown {
  try {
    return parseJson(bytes, bounds)
  } catch (error) {
    if (error instanceof BadJson) return undefined
    throw error
  }
}
