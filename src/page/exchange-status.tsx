/** The status of an exchange, or that it is still open. */
import type { ListedRow } from './all-rows.ts'
import { Status } from './traffic-view.tsx'

export function ExchangeStatus({ row }: { readonly row: ListedRow }) {
  if (row.is_open !== true) return <Status row={row} />
  return row.status === null ? (
    <span class="soft">waiting</span>
  ) : (
    <>
      <Status row={row} /> <span class="soft">in progress</span>
    </>
  )
}
