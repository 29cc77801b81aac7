/** The order of a table: as the server lists it, or by one column. */
import type { ListedRow } from './all-rows.ts'

/** What rows are ordered by. */
export type OrderKey = (row: ListedRow) => string | number

export interface RowOrder {
  /** The title of the column. */
  readonly by: string
  readonly isDescending: boolean
}

/** The order after a click on the title of a column: ascending, descending, then the server's again. */
export function nextOrder(order: RowOrder | undefined, by: string): RowOrder | undefined {
  if (order?.by !== by) return { by, isDescending: false }
  return order.isDescending ? undefined : { by, isDescending: true }
}

/** As `aria-sort` has it. */
export function sortOf(order: RowOrder | undefined, by: string): 'ascending' | 'descending' | 'none' {
  if (order?.by !== by) return 'none'
  return order.isDescending ? 'descending' : 'ascending'
}

/** `service-9` comes before `service-10`. */
const texts = new Intl.Collator('en', { numeric: true })

/** Equal rows keep their order; those without a value come last in both directions. */
export function orderRows(rows: readonly ListedRow[], key: OrderKey, isDescending: boolean): readonly ListedRow[] {
  const keyed = rows.map((row) => ({ row, key: key(row) }))
  const sign = isDescending ? -1 : 1
  return keyed
    .toSorted((a, b) => {
      if (a.key === '' || b.key === '') return Number(a.key === '') - Number(b.key === '')
      return sign * compare(a.key, b.key)
    })
    .map(({ row }) => row)
}

function compare(a: string | number, b: string | number): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b
  return texts.compare(String(a), String(b))
}
