/** Brings the rules of a bind into one form: the libraries that agents are built with write them in several. */
import { BadJson, MAX_JSON_VALUES, parseJson } from '../../lib/text/json.ts'

/** The depth limit is that of policy texts. */
const bounds = { maxDepth: 32, maxValues: MAX_JSON_VALUES }

/** Rules in a text. The Rust library spells the names `Inbound`, `Actions` and so on. */
export function plainText(text: string): string {
  if (!/^\s*\{\s*"(In|Out)bound"/.test(text)) return text
  const document = json(Buffer.from(text))
  return document === undefined ? text : JSON.stringify(lists(document, {}))
}

/** Rules in an object, as older Go libraries send them: the settings of an action are JSON in base64. */
export function plainRules(value: unknown): unknown {
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
