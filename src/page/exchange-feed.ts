/** Lists the latest exchanges: reads only new ones, and remembers the rest. */
import type { ListedRow, Rows } from './all-rows.ts'
import { MAX_ROWS } from './all-rows.ts'
import { type ApiCaller, type CallOutcome, isRecord } from './api-caller.ts'
import { textIn } from './text-in.ts'

const PAGE_ROWS = 100
/** The most pages to read at once. If more are new, older ones are left out, and the table says so. */
const MOST_PAGES = 5

/** The filters of a list of exchanges; empty ones are not sent. */
export type ExchangeFilters = Readonly<Record<'method' | 'path' | 'status' | 'edge_id' | 'endpoint_id', string>>

/** The filters as a query, after its other parameters. */
export function queryOf(filters: ExchangeFilters, others: Readonly<Record<string, string>> = {}): string {
  const given = Object.entries(filters).filter(([, value]) => value !== '')
  return new URLSearchParams({ ...others, ...Object.fromEntries(given) }).toString()
}

/** Merges two lists of rows: each row once, newest first. Ids sort by the end of their exchange. */
export function mergedRows({ rows, isCut }: Rows, others: readonly ListedRow[]): Rows {
  if (others.length === 0) return { rows, isCut }
  const byId = new Map([...rows, ...others].map((row) => [textIn(row.id), row]))
  const all = [...byId].toSorted(([a], [b]) => (a < b ? 1 : -1)).map(([, row]) => row)
  return { rows: all.slice(0, MAX_ROWS), isCut: isCut || all.length > MAX_ROWS }
}

/** The rows of `known`, preceded by all newer ones. */
export async function readExchanges(
  api: Pick<ApiCaller, 'get'>,
  filters: ExchangeFilters,
  known: Rows,
): Promise<CallOutcome<Rows>> {
  const newest = textIn(known.rows[0]?.id)
  const fresh: ListedRow[] = []
  for (let page = 0; page < MOST_PAGES; page++) {
    const last = textIn(fresh.at(-1)?.id)
    const query = queryOf(filters, { limit: `${PAGE_ROWS}`, ...(last !== '' && { before_id: last }) })
    const outcome = await api.get<{ readonly exchanges: readonly unknown[]; readonly next_page_uri: unknown }>(
      `/exchanges?${query}`,
    )
    if (!outcome.ok) return outcome
    const rows = outcome.value.exchanges.filter(isRecord)
    const at = rows.findIndex(({ id }) => id === newest)
    fresh.push(...(at < 0 ? rows : rows.slice(0, at)))
    if (at >= 0) return { ok: true, value: { rows: [...fresh, ...known.rows].slice(0, MAX_ROWS), isCut: known.isCut } }
    if (outcome.value.next_page_uri === null) return { ok: true, value: { rows: fresh, isCut: false } }
  }
  // The known rows lie beyond a gap.
  return { ok: true, value: { rows: fresh, isCut: true } }
}
