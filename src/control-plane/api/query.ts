/** The query of a request: `limit`, `before_id` and what a resource filters by on lists, nothing elsewhere (D3, D4). */
import type { TProperties } from 'typebox'
import { isId } from '../../lib/ids.ts'
import { check } from '../../lib/shape/check.ts'
import { closedObject } from '../../lib/shape/schema.ts'
import { Type } from '../../lib/shape/type.ts'
import { nearest } from '../../lib/text/nearest.ts'
import { plural } from '../../lib/text/plural.ts'
import { Refusal } from '../../model/errors.ts'
import { refusalOf } from './body.ts'
import type { Dialect } from './dialect/api-dialect.ts'
import type { ApiRoute } from './routes.ts'

export interface Page {
  readonly limit: number
  readonly beforeId?: string
  /** Filters of the list, by name. */
  readonly filters?: Readonly<Record<string, string>>
}

const MAX_LIMIT = 100

/** Reads the query of a request to `route`; throws `Refusal`. */
export function readQuery(route: ApiRoute, search: string, { queryAliases, ignoresEmptyQuery }: Dialect): Page {
  const { filters: filtered = {} } = route
  const known = [...(route.action === 'list' ? ['limit', 'before_id'] : []), ...Object.keys(filtered)]
  const query = new URLSearchParams()
  for (const [name, value] of new URLSearchParams(search)) {
    if (value === '' && ignoresEmptyQuery) continue
    query.append(queryAliases.get(name) ?? name, value)
  }
  const seen = new Set<string>()
  for (const name of query.keys()) {
    if (!known.includes(name)) throw new Refusal('UNKNOWN_QUERY', unknown(name, known))
    if (seen.has(name)) throw new Refusal('REPEATED_QUERY', `the query parameter \`${name}\` is given more than once`)
    seen.add(name)
  }
  const limit = readLimit(query.get('limit'))
  const filters = readFilters(filtered, query)
  const beforeId = query.get('before_id')
  if (beforeId === null) return { limit, ...filters }
  // The id need not exist: it is only a position in the order (D3).
  const { noun, prefix } = route.resource
  if (!isId(beforeId, prefix))
    throw new Refusal('BAD_CURSOR', `\`before_id\` must be an id of ${plural(noun)}: \`${prefix}…\``)
  return { limit, beforeId, ...filters }
}

function readFilters(filtered: TProperties, query: URLSearchParams): Pick<Page, 'filters'> {
  const names = Object.keys(filtered)
  if (names.length === 0) return {}
  const given = Object.fromEntries([...query].filter(([name]) => names.includes(name)))
  const form = closedObject(
    Object.fromEntries(names.map((name) => [name, Type.Optional(filtered[name] ?? Type.String())])),
  )
  try {
    return { filters: check(form, given) as Record<string, string> } // all are texts
  } catch (error) {
    throw refusalOf(error)
  }
}

function readLimit(text: string | null): number {
  if (text === null) return MAX_LIMIT
  if (!/^[1-9][0-9]{0,2}$/.test(text) || Number(text) > MAX_LIMIT) throw new Refusal('BAD_LIMIT')
  return Number(text)
}

function unknown(name: string, known: readonly string[]): string {
  const problem = `\`${name.slice(0, 100)}\` is not a query parameter of this address`
  if (known.length === 0) return `${problem}; it takes none`
  const meant = nearest(name, known)
  return meant
    ? `${problem}; did you mean \`${meant}\`?`
    : `${problem}; it takes ${known.map((k) => `\`${k}\``).join(' and ')}`
}
