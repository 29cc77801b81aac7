/** Composes the explanation of policies without a server: what `postern policy test` does with those in its file. */
import { explain } from './edge/explain/explain.ts'
import { check } from './lib/shape/check.ts'
import { BadJson, MAX_JSON_VALUES, parseJson } from './lib/text/json.ts'
import type { Described } from './model/described.ts'
import { Refusal } from './model/errors.ts'
import type { Explanation } from './model/explanation.ts'
import { formsOf } from './modules/forms.ts'
import type { Lookup, ModuleConfig } from './modules/module.ts'
import { placeFor, policyEdge } from './modules/policy/dry-run.ts'
import { policy } from './modules/policy/index.ts'
import { readYaml } from './policy/yaml.ts'

export { BadYaml } from './policy/yaml.ts'

const MAX_DEPTH = 32

/** What policies read as `conn.server_region` where there is no server. */
const REGION = 'local'

const HTTPS_PORT = 443

/** The value of a file of JSON or YAML; throws `BadYaml`. */
export function readDocument(text: string): unknown {
  try {
    return parseJson(Buffer.from(text), { maxDepth: MAX_DEPTH, maxValues: MAX_JSON_VALUES })
  } catch (error) {
    if (!(error instanceof BadJson)) throw error
    return readYaml(text)
  }
}

/**
 * What a policy would do to described traffic. It is written as the API takes it: an object with `inbound` and
 * `outbound`, or with the lists of the later spelling, or a text of these. Throws `BadValue` or `Refusal`.
 */
export async function explainPolicy(written: unknown, asked: Described): Promise<Explanation> {
  const place = placeFor(asked)
  if (!place) throw new Refusal('FIELD_REQUIRED', '`request` or `connection` is required: describe one')
  const { form, given } = spelled(written)
  const config = form.read(check(form.body, given) as ModuleConfig, { place, at: `${form.name}.` })
  const edge = policyEdge(config, place, asked, noLookup)
  return explain({ config: edge, asked, region: REGION, publicHttpsPort: HTTPS_PORT, counters: [] })
}

function spelled(written: unknown) {
  const [own, later] = formsOf(policy, 'route')
  if (!own || !later) throw new Error('a policy has two spellings')
  if (typeof written === 'string') return { form: later, given: { value: written } }
  const isLater =
    typeof written === 'object' && written !== null && Object.keys(written).some((name) => /^on_/.test(name))
  return isLater ? { form: later, given: { value: JSON.stringify(written) } } : { form: own, given: written }
}

const noLookup: Lookup = {
  ipRules: (id) => {
    throw new Refusal(
      'UNKNOWN_REFERENCE',
      `the IP policy \`${id}\` is on a server; name an edge or route of it instead`,
    )
  },
  authority: nothing,
  backend: nothing,
}

function nothing(): never {
  throw new Error('a policy names no such thing')
}
