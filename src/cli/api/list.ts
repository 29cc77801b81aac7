/** Lists: follows the pages and chooses the columns. */
import type { SchemaNode } from '../../lib/shape/check.ts'
import { Failure } from '../command-failure.ts'
import type { ApiAnswer, Call } from './api-client.ts'
import type { FieldFlag } from './flags.ts'

/** The largest page that the API returns. */
const PAGE = 100

/** How many fields are shown between the id and the description. */
const OWN_COLUMNS = 3

/** Fields that are of little use in a table, or too long for one. */
const plainOnly: ReadonlySet<string> = new Set(['uri', 'metadata', 'token', 'public_key', 'ca_pem', 'body'])
const last: readonly string[] = ['description', 'created_at', 'started_at']

/** The filters that were given, as a query; empty when there are none. */
export function queryOf(
  filters: readonly FieldFlag[],
  options: Readonly<Record<string, unknown>>,
  others: Readonly<Record<string, string>> = {},
): string {
  const query = new URLSearchParams(others)
  for (const { field, option } of filters) {
    const given = options[option.attributeName()]
    if (typeof given === 'string') query.set(field, given)
  }
  return query.size === 0 ? '' : `?${query.toString()}`
}

/** What to list, and how much of it. */
interface ListAsk {
  readonly path: string
  readonly listKey: string
  readonly limit?: number | undefined
  readonly filters?: readonly FieldFlag[]
  readonly options?: Readonly<Record<string, unknown>>
}

/** All items, or the first `limit` of them. */
export async function listAll(
  call: Call,
  { path, listKey, limit = Infinity, filters = [], options = {} }: ListAsk,
): Promise<readonly ApiAnswer[]> {
  const items: ApiAnswer[] = []
  let query: string | null = queryOf(filters, options, { limit: String(Math.min(PAGE, limit)) })
  while (query !== null && items.length < limit) {
    const page: ApiAnswer | null = await call('GET', `${path}${query}`)
    const found = page?.[listKey]
    if (!Array.isArray(found)) throw new Failure(`the response has no list \`${listKey}\`; check --api-url`)
    items.push(...found)
    // Only the query is used, so that the key is sent to the address that the user gave and to no other.
    const next = typeof page?.next_page_uri === 'string' ? new URL(page.next_page_uri, 'http://x').search : null
    if (next === query) throw new Failure('the API returned the same page twice; its response is broken')
    query = next
  }
  return items.slice(0, limit)
}

/**
 * The columns of a list: the id, a few fields of the resource, its description and its time. They follow from the schema, so
 * that scripts can rely on them. `own` names the fields to show where the first few say too little.
 */
export function columnsOf(view: SchemaNode, own: readonly string[] = shortFields(view)): readonly string[] {
  const names = Object.keys(view.properties ?? {})
  return ['id', ...own, ...last.filter((name) => names.includes(name))]
}

/** An item with a value for each column; a column is named by the last part of its path. */
export function rowOf(item: ApiAnswer, columns: readonly string[]): ApiAnswer {
  const valueAt = (path: string): unknown =>
    path.split('.').reduce<unknown>((value, part) => (isAnswer(value) ? value[part] : undefined), item)
  return Object.fromEntries(columns.map((path) => [headingOf(path), valueAt(path)]))
}

export function headingOf(path: string): string {
  return path.slice(path.lastIndexOf('.') + 1)
}

function shortFields(view: SchemaNode): readonly string[] {
  const own = Object.entries(view.properties ?? {}).filter(
    ([name, node]) => name !== 'id' && !plainOnly.has(name) && !last.includes(name) && isShort(node),
  )
  return own.slice(0, OWN_COLUMNS).map(([name]) => name)
}

function isAnswer(value: unknown): value is ApiAnswer {
  return typeof value === 'object' && value !== null
}

function isShort(node: SchemaNode): boolean {
  // A nullable field has a list of types.
  const [type] = [node.type].flat()
  if (type === 'array') return [node.items?.type].flat()[0] === 'string'
  return node.enum !== undefined || ['string', 'integer', 'number', 'boolean'].includes(type ?? '')
}
