/** Columns of a list of exchanges, and their status, as both pages show them. */
import type { ListedRow } from './all-rows.ts'
import type { Column } from './table.tsx'
import { textIn } from './text-in.ts'
import { clockTime, durationText, sizeText } from './time-text.ts'

export const exchangeColumns = {
  time: { title: 'time', show: ({ started_at }) => clockTime(Date.parse(textIn(started_at))) },
  status: {
    title: 'status',
    show: (row) => <ExchangeStatus row={row} />,
    text: (row) => `${textIn(row.status)} ${textIn(row.error_code)}`,
  },
  duration: {
    title: 'duration',
    show: (row) => (row.is_open === true ? '…' : durationText(Number(row.duration_ms))),
  },
  size: { title: 'size', show: ({ response_bytes }) => sizeText(Number(response_bytes)) },
} satisfies Readonly<Record<string, Column>>

/** The text by which a request is found and sorted. */
export function requestText({ method, host, path }: ListedRow): string {
  return `${textIn(method)} ${textIn(host)}${textIn(path)}`
}

/** The status of an exchange, or that it is still open. */
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

function Status({ row: { status, error_code } }: { readonly row: ListedRow }) {
  const isBad = status === null || Number(status) >= 500
  return (
    <span class={isBad ? 'bad' : ''}>
      {status === null ? 'no answer' : textIn(status)} {textIn(error_code)}
    </span>
  )
}
