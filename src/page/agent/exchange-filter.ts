/** Filters the exchanges of an agent as the user types. */
import type { ListedRow } from '../all-rows.ts'
import { textIn } from '../text-in.ts'

/** An empty string matches everything. */
export interface AgentFilter {
  readonly method: string
  /** `404`, a prefix such as `4`, or `4xx`; `none` for no answer. */
  readonly status: string
  readonly tunnel: string
}

export const everyExchange: AgentFilter = { method: '', status: '', tunnel: '' }

export function filterExchanges(rows: readonly ListedRow[], filter: AgentFilter): readonly ListedRow[] {
  const method = filter.method.trim().toUpperCase()
  const status = filter.status.trim().toLowerCase()
  return rows.filter(
    (row) =>
      textIn(row.method).toUpperCase().startsWith(method) &&
      hasStatus(row, status) &&
      (filter.tunnel === '' || row.tunnel_name === filter.tunnel),
  )
}

function hasStatus({ status }: ListedRow, wanted: string): boolean {
  if (wanted === '') return true
  if (wanted === 'none') return status === null
  return textIn(status).startsWith(wanted.replace(/x+$/, ''))
}
