/** Explains policies without a server, for the files of `postern policy test`. */
import { explain } from '../../data-plane/dry-run/explain.ts'
import { undivided } from '../../lib/limits/divided-counters.ts'
import { check } from '../../lib/shape/check.ts'
import { BadJson, MAX_JSON_VALUES, parseJson } from '../../lib/text/json.ts'
import type { Described } from '../../model/described.ts'
import { Refusal } from '../../model/errors.ts'
import type { Explanation } from '../../model/explanation.ts'
import type { Lookup, ModuleConfig } from '../../modules/module.ts'
import { policy } from '../../modules/policy/form.ts'
import { askedPlace, policyEdge } from '../../modules/policy/policy-dry-run.ts'
import { readYaml } from '../../modules/policy/policy-yaml.ts'
import { formsOf } from '../../modules/spellings.ts'

export { BadYaml } from '../../modules/policy/policy-yaml.ts'

const MAX_DEPTH = 32

/** The value of `conn.server_region`, since there is no server. */
const REGION = 'local'

const HTTPS_PORT = 443

/** Parses JSON or YAML; throws `BadYaml`. */
export function readDocument(text: string): unknown {
  try {
    return parseJson(Buffer.from(text), { maxDepth: MAX_DEPTH, maxValues: MAX_JSON_VALUES })
  } catch (error) {
    if (!(error instanceof BadJson)) throw error
    return readYaml(text)
  }
}

const noLookup: Lookup = {
  ipRules: (id) => {
    throw new Refusal(
      'UNKNOWN_REFERENCE',
      `the IP policy \`${id}\` is stored on a server, which is not asked here; explain an edge or route of that server instead`,
    )
  },
  authority: nothing,
  backend: nothing,
}

/**
 * Tells what a policy would do to the described traffic. `written` is in any form that the API accepts: an object with
 * `inbound` and `outbound`, one with the newer list names, or a text of either. Throws `BadValue` or `Refusal`.
 */
export async function explainPolicy(written: unknown, asked: Described): Promise<Explanation> {
  const place = askedPlace(asked)
  if (!place) throw new Refusal('FIELD_REQUIRED', '`request` or `connection` is required: describe one')
  const { form, given } = spellPolicy(written)
  const config = form.read(check(form.body, given) as ModuleConfig, { place, at: `${form.name}.` })
  const edge = policyEdge(config, place, asked, noLookup)
  return explain({
    config: edge,
    asked,
    region: REGION,
    publicHttpsPort: HTTPS_PORT,
    ngrokErrorHeader: true,
    counters: [],
    limitPart: undivided,
  })
}

function spellPolicy(written: unknown) {
  const [own, later] = formsOf(policy, 'route')
  if (!own || !later) throw new Error('the policy module must have two forms')
  if (typeof written === 'string') return { form: later, given: { value: written } }
  const isLater =
    typeof written === 'object' && written !== null && Object.keys(written).some((name) => /^on_/.test(name))
  return isLater ? { form: later, given: { value: JSON.stringify(written) } } : { form: own, given: written }
}

function nothing(): never {
  throw new Error('a policy cannot refer to this kind of resource')
}
