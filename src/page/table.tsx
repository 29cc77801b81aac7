/** A table of any length: only rows in view are drawn. */

import type { ComponentChildren } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { ListedRow, Rows } from './all-rows.ts'
import { countText } from './count-text.ts'
import { nextOrder, type OrderKey, orderRows, type RowOrder, sortOf } from './row-order.ts'
import { rowWindow } from './row-window.ts'
import { textIn } from './text-in.ts'
import type { Live } from './use-live.ts'

/** The height of a row in `page.css`, in pixels. */
const ROW_HEIGHT = 38

export interface Column {
  readonly title: string
  readonly show: (row: ListedRow) => ComponentChildren
  /** The text that a search looks at; none if omitted. */
  readonly text?: (row: ListedRow) => string
  /** The sort key of the column; by default its text. Without either the column cannot be sorted by. */
  readonly order?: OrderKey
}

interface TableProps {
  /** What the rows are: `tunnels`. */
  readonly label: string
  readonly live: Live<Rows>
  readonly columns: readonly Column[]
  /** Shown in place of a table without rows. */
  readonly empty: ComponentChildren
}

/** Can be searched, and sorted by the titles of its columns. */
export function Table({ label, live, columns, empty }: TableProps) {
  const [search, setSearch] = useState('')
  const [order, setOrder] = useState<RowOrder>()
  const field = useRef<HTMLInputElement>(null)
  useSearchKey(field)
  const { value } = live
  const found = useMemo(
    () => inOrder(searchRows(value?.rows ?? [], columns, search), columns, order),
    [value, columns, search, order],
  )
  if (!value) return null
  if (value.rows.length === 0) return <div class="card empty">{empty}</div>
  return (
    <>
      <div class="table-tools">
        <input
          ref={field}
          type="search"
          placeholder="Search  ( / )"
          aria-label={`Search ${label}`}
          value={search}
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
        <span class="soft" role="status">
          {found.length === value.rows.length ? '' : `${found.length} of `}
          {countText(value.rows.length, label)}
          {value.isCut && '; there are more'}
        </span>
      </div>
      <DrawnRows label={label} rows={found} columns={columns} order={order} onOrder={setOrder} />
    </>
  )
}

interface DrawnRowsProps extends Pick<TableProps, 'label' | 'columns'> {
  readonly rows: readonly ListedRow[]
  readonly order: RowOrder | undefined
  readonly onOrder: (order: RowOrder | undefined) => void
}

function DrawnRows({ label, rows, columns, order, onOrder }: DrawnRowsProps) {
  const box = useRef<HTMLElement>(null)
  const [scrolled, setScrolled] = useState({ scrollTop: 0, height: 800 })
  useEffect(() => {
    const { current } = box
    if (!current) return
    const note = () => setScrolled({ scrollTop: current.scrollTop, height: current.clientHeight })
    const sizes = new ResizeObserver(note)
    sizes.observe(current)
    current.addEventListener('scroll', note, { passive: true })
    return () => {
      sizes.disconnect()
      current.removeEventListener('scroll', note)
    }
  }, [])
  const { from, to, above, below } = rowWindow({ count: rows.length, rowHeight: ROW_HEIGHT, ...scrolled })
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
    <section class="table-box" ref={box} tabIndex={0} aria-label={`Table of ${label}`}>
      <table aria-rowcount={rows.length + 1}>
        <thead>
          <tr>
            {columns.map((column) => (
              <Title key={column.title} column={column} order={order} onOrder={onOrder} />
            ))}
          </tr>
        </thead>
        <tbody>
          <Space height={above} span={columns.length} />
          {rows.slice(from, to).map((row, i) => (
            <tr key={textIn(row.id)} aria-rowindex={from + i + 2}>
              {columns.map(({ title, show }) => (
                <td key={title}>{show(row)}</td>
              ))}
            </tr>
          ))}
          <Space height={below} span={columns.length} />
        </tbody>
      </table>
    </section>
  )
}

/** The title of a column; a button if the column can sort the rows. */
function Title({ column, order, onOrder }: Pick<DrawnRowsProps, 'order' | 'onOrder'> & { readonly column: Column }) {
  const { title } = column
  if (!keyOf(column)) return <th scope="col">{title}</th>
  return (
    <th scope="col" aria-sort={sortOf(order, title)}>
      <button type="button" class="order" onClick={() => onOrder(nextOrder(order, title))}>
        {title}
      </button>
    </th>
  )
}

/** Takes the space of the rows that are not drawn. */
function Space({ height, span }: { readonly height: number; readonly span: number }) {
  if (height === 0) return null
  return (
    <tr class="space">
      <td colSpan={span} style={{ height: `${height}px` }} />
    </tr>
  )
}

function searchRows(rows: readonly ListedRow[], columns: readonly Column[], search: string): readonly ListedRow[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean)
  if (words.length === 0) return rows
  return rows.filter((row) => {
    const text = columns
      .map((column) => column.text?.(row) ?? '')
      .join('\n')
      .toLowerCase()
    return words.every((word) => text.includes(word))
  })
}

function keyOf({ order, text }: Column): OrderKey | undefined {
  return order ?? text
}

function inOrder(
  rows: readonly ListedRow[],
  columns: readonly Column[],
  order: RowOrder | undefined,
): readonly ListedRow[] {
  const column = columns.find(({ title }) => title === order?.by)
  const key = column && keyOf(column)
  return key && order ? orderRows(rows, key, order.isDescending) : rows
}

/** `/` focuses the search, unless the user is typing. */
function useSearchKey(field: { readonly current: HTMLInputElement | null }): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const isTyping = event.target instanceof HTMLElement && event.target.closest('input, textarea, select, dialog')
      if (event.key !== '/' || event.ctrlKey || event.metaKey || isTyping) return
      event.preventDefault()
      field.current?.focus()
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [field])
}
