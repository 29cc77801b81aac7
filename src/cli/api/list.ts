/** Lists: following the pages, and choosing the columns. */
import type { SchemaNode } from '../../lib/shape/check.ts'
import { Failure } from '../failure.ts'
import type { Answer, Call } from './client.ts'

/** The largest page the API gives. */
const PAGE = 100

/** How many fields stand between the id and the description. */
const OWN_COLUMNS = 3

/** Fields that say little in a table, or are too long for one. */
const plainOnly: ReadonlySet<string> = new Set(['uri', 'metadata', 'token', 'public_key', 'ca_pem', 'body'])
const last: readonly string[] = ['description', 'created_at', 'started_at']

/** All items, or the first `limit` of them. */
export async function listAll(call: Call, path: string, listKey: string, limit = Infinity): Promise<readonly Answer[]> {
  const items: Answer[] = []
  let query: string | null = `?limit=${Math.min(PAGE, limit)}`
  while (query !== null && items.length < limit) {
    const page: Answer | null = await call('GET', `${path}${query}`)
    const found = page?.[listKey]
    if (!Array.isArray(found)) throw new Failure(`the answer has no list \`${listKey}\`; check --api-url`)
    items.push(...found)
    // Only the query is taken over: the key goes to the address that the user gave, and to no other.
    const next = typeof page?.next_page_uri === 'string' ? new URL(page.next_page_uri, 'http://x').search : null
    if (next === query) throw new Failure('the API names the same page as the next one; its answer is broken')
    query = next
  }
  return items.slice(0, limit)
}

/** The id, a few fields of its own, its description and its time; from the schema, so that scripts can count on them. */
export function columnsOf(view: SchemaNode): readonly string[] {
  const fields = Object.entries(view.properties ?? {})
  const own = fields.filter(
    ([name, node]) => name !== 'id' && !plainOnly.has(name) && !last.includes(name) && isShort(node),
  )
  const names = new Set(fields.map(([name]) => name))
  return ['id', ...own.slice(0, OWN_COLUMNS).map(([name]) => name), ...last.filter((name) => names.has(name))]
}

function isShort(node: SchemaNode): boolean {
  // A nullable field has a list of types.
  const [type] = [node.type].flat()
  if (type === 'array') return [node.items?.type].flat()[0] === 'string'
  return node.enum !== undefined || ['string', 'integer', 'number', 'boolean'].includes(type ?? '')
}
