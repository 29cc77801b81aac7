/** Reads a list of the API, page by page or at once. */
import { type ApiCaller, type CallOutcome, isRecord } from './api-caller.ts'

/** One entry of a list, as the API shows it. */
export type ListedRow = Readonly<Record<string, unknown>>

/** The most entries that the page holds; a longer list is cut off, and says so. */
export const MAX_ROWS = 10_000
const PAGE_ROWS = 100

export interface Rows {
  readonly rows: readonly ListedRow[]
  /** Whether there are more rows than were read. */
  readonly isCut: boolean
}

/** Reads a list that has no pages. */
export async function readRows(api: Pick<ApiCaller, 'get'>, path: string): Promise<CallOutcome<Rows>> {
  const outcome = await api.get<ListedRow>(path)
  return outcome.ok ? { ok: true, value: { rows: rowsIn(outcome.value), isCut: false } } : outcome
}

/** Reads a list page by page; `path` has no query. */
export async function readAllRows(api: Pick<ApiCaller, 'get'>, path: string): Promise<CallOutcome<Rows>> {
  const rows: ListedRow[] = []
  let before = ''
  for (;;) {
    const outcome = await api.get<ListedRow>(`${path}?limit=${PAGE_ROWS}${before}`)
    if (!outcome.ok) return outcome
    rows.push(...rowsIn(outcome.value))
    const last = rows.at(-1)?.id
    if (outcome.value.next_page_uri === null || typeof last !== 'string')
      return { ok: true, value: { rows, isCut: false } }
    if (rows.length >= MAX_ROWS) return { ok: true, value: { rows, isCut: true } }
    before = `&before_id=${encodeURIComponent(last)}`
  }
}

/** A list has one array, under a name of its own. */
function rowsIn(list: ListedRow): readonly ListedRow[] {
  const found = Object.values(list).find(Array.isArray) ?? []
  return found.filter(isRecord)
}
