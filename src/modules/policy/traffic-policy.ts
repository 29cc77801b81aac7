/** `traffic_policy`: the newer spelling of `policy`, with all rules in one text of YAML or JSON (R-4.1, R-4.2). */
import type { Static } from 'typebox'
import { NEVER_HERE } from '../../lib/patterns/pattern-price.ts'
import { check } from '../../lib/shape/check.ts'
import { Type } from '../../lib/shape/type.ts'
import { BadJson, MAX_JSON_VALUES, parseJson } from '../../lib/text/json.ts'
import { Refusal } from '../../model/errors.ts'
import { moduleForm, type Place, type Spelling, type Where } from '../module.ts'
import { checkPolicy } from './engine/accept.ts'
import { type Policy, ruleList } from './engine/policy-form.ts'
import { directions, type ListNames, ownLists, type Phase, phaseOf, placeName } from './engine/policy-phases.ts'
import { BadYaml, readYaml } from './policy-yaml.ts'

/** Large enough that any `policy` can be written in this spelling too; JSON is cheap to read. */
const MAX_TEXT_BYTES = 512 * 1024
const MAX_DEPTH = 32

const form = moduleForm({
  value: Type.String({
    minLength: 1,
    maxBytes: MAX_TEXT_BYTES,
    description:
      'The rules as YAML or JSON: an object with `inbound` and `outbound`, or with `on_tcp_connect` (TCP and TLS edges) or `on_http_request` and `on_http_response` (routes).',
  }),
})

export const trafficPolicy: Spelling = {
  name: 'traffic_policy',
  about: 'The later spelling of `policy`: the same rules in one text of YAML or JSON.',
  form,
  read: (given, where) => {
    // The value was checked against the form.
    const { enabled, value } = given as Static<typeof form>
    const policy: Policy = { enabled, ...rulesOf(value, where) }
    checkPolicy(policy, where)
    return policy
  },
  price: () => NEVER_HERE,
  show: (config) => {
    // Only what this module accepted is stored.
    const { enabled, inbound, outbound, written } = config as Policy
    return { enabled, value: written?.text ?? JSON.stringify({ inbound, outbound }) }
  },
}

const laterNames: Readonly<Record<Phase, string>> = {
  connect: 'on_tcp_connect',
  request: 'on_http_request',
  response: 'on_http_response',
}

/** The rule lists in a text, under the older or the newer names. */
function rulesOf(text: string, where: Where): Omit<Policy, 'enabled'> {
  const path = (name: string): string => `${where.at}value: ${name}`
  // The field names of the schema are whole paths, so that messages begin with them.
  const schema = Type.Object(Object.fromEntries(knownLists.map((name) => [path(name), ruleList('Rules.')])), {
    additionalProperties: false,
  })
  const document = parse(text, `${where.at}value`)
  const checked = check(schema, Object.fromEntries(Object.entries(document).map(([name, v]) => [path(name), v])))
  const lists = listsOf(
    knownLists.filter((name) => checked[path(name)] !== undefined),
    where,
  )
  const [inbound, outbound] = directions.map((direction) => checked[path(lists[direction])])
  return { ...(inbound && { inbound }), ...(outbound && { outbound }), written: { text, lists } }
}

const knownLists = [...directions, ...Object.values(laterNames)]

/** The names of the rule lists in a document with the fields `given`; throws `Refusal` when older and newer are mixed. */
function listsOf(given: readonly string[], { place, at }: Where): ListNames {
  const later = given.filter((name) => !Object.hasOwn(ownLists, name))
  const [first] = later
  if (first === undefined) return ownLists
  if (later.length < given.length) {
    throw refuse(`${at}value: ${first}`, 'is mixed with `inbound` or `outbound`, the older names; keep to one kind')
  }
  const lists = laterLists(place)
  const here = Object.values(lists).filter((name) => !Object.hasOwn(ownLists, name))
  const foreign = later.find((name) => !here.includes(name))
  if (foreign === undefined) return lists
  const remedy = `use ${here.map((name) => `\`${name}\``).join(' or ')}`
  throw refuse(`${at}value: ${foreign}`, `does not happen on ${placeName(place)}; ${remedy}`)
}

/** R-4.2: the newer names of the rule lists, which depend on the place. A list without a phase keeps its older name. */
function laterLists(place: Place): ListNames {
  const name = (direction: keyof ListNames): string => {
    const phase = phaseOf(place, direction)
    return phase ? laterNames[phase] : direction
  }
  return { inbound: name('inbound'), outbound: name('outbound') }
}

function parse(text: string, at: string): object {
  const value = read(text, at)
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  throw refuse(at, 'must hold an object with lists of rules, such as `inbound`')
}

function read(text: string, at: string): unknown {
  try {
    return parseJson(Buffer.from(text), { maxDepth: MAX_DEPTH, maxValues: MAX_JSON_VALUES })
  } catch (cause) {
    if (!(cause instanceof BadJson)) throw cause
  }
  try {
    // The limits of YAML are at least as strict, so content that is refused as JSON is refused again here.
    return readYaml(text)
  } catch (cause) {
    if (!(cause instanceof BadYaml)) throw cause
    throw refuse(at, cause.message, cause)
  }
}

function refuse(at: string, what: string, cause?: unknown): Refusal {
  return new Refusal('BAD_POLICY', `\`${at}\` ${what}`, { field: at.replace(/:.*/s, ''), cause })
}
