/** The latest requests of visitors, as they come. */
import { useState } from 'preact/hooks'
import type { ListedRow } from './all-rows.ts'
import type { ExchangeFilters } from './exchange-feed.ts'
import { Freshness, ReadingFault } from './freshness.tsx'
import { linkTo } from './page-location.ts'
import { usePage } from './page-state.ts'
import { PlainText } from './plain-text.tsx'
import { type Column, Table } from './table.tsx'
import { textIn } from './text-in.ts'
import { clockTime, durationText, sizeText } from './time-text.ts'
import { useExchanges } from './use-exchanges.ts'
import { useOutline } from './use-live.ts'
import { ViewHead } from './view-head.tsx'

const everything: ExchangeFilters = { method: '', path: '', status: '', edge_id: '', endpoint_id: '' }

export function TrafficView() {
  const page = usePage()
  const outline = useOutline()
  const { query } = page.location.value
  const [filters, setFilters] = useState<ExchangeFilters>({
    ...everything,
    edge_id: query.get('edge_id') ?? '',
    endpoint_id: query.get('endpoint_id') ?? '',
  })
  if (!outline) return <ViewHead title="Traffic" />
  if (!outline.paths.has('/exchanges')) {
    return (
      <>
        <ViewHead title="Traffic" />
        <p>This server does not record requests.</p>
      </>
    )
  }
  const hasCaptures = outline.paths.has('/captures')
  return <Exchanges filters={filters} onFilters={setFilters} hasCaptures={hasCaptures} />
}

interface ExchangesProps {
  readonly filters: ExchangeFilters
  readonly onFilters: (filters: ExchangeFilters) => void
}

function Exchanges({ filters, onFilters, hasCaptures }: ExchangesProps & { readonly hasCaptures: boolean }) {
  const live = useExchanges(filters)
  return (
    <>
      <ViewHead title="Traffic" note={<Freshness reading={live} />}>
        {hasCaptures && <a href={linkTo('/captures')}>Captures</a>}
      </ViewHead>
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <Filter name="method" label="Method" filters={filters} onFilters={onFilters} />
        <Filter name="path" label="Path begins with" filters={filters} onFilters={onFilters} />
        <Filter name="status" label="Status" filters={filters} onFilters={onFilters} />
        <Filter name="edge_id" label="Edge" filters={filters} onFilters={onFilters} />
        <Filter name="endpoint_id" label="Endpoint" filters={filters} onFilters={onFilters} />
      </form>
      <ReadingFault reading={live} />
      <Table
        label="requests"
        live={live}
        columns={columns}
        empty="No requests yet. They appear here as they arrive, newest first."
      />
    </>
  )
}

interface FilterProps extends ExchangesProps {
  readonly name: keyof ExchangeFilters
  readonly label: string
}

/** Applied on Enter or when the field loses focus, since half a status or id matches nothing. */
function Filter({ name, label, filters, onFilters }: FilterProps) {
  return (
    <label>
      {label}
      <input
        value={filters[name]}
        spellcheck={false}
        autoComplete="off"
        onChange={({ currentTarget }) => onFilters({ ...filters, [name]: currentTarget.value.trim() })}
      />
    </label>
  )
}

const columns: readonly Column[] = [
  {
    title: 'time',
    show: ({ started_at }) => clockTime(Date.parse(textIn(started_at))),
    order: ({ started_at }) => textIn(started_at),
  },
  {
    title: 'request',
    show: (row) => (
      <a href={linkTo(`/traffic/${textIn(row.id)}`)}>
        <code>{textIn(row.method)}</code> <PlainText text={`${textIn(row.host)}${textIn(row.path)}`} most={90} />
      </a>
    ),
    text: (row) => `${textIn(row.method)} ${textIn(row.host)}${textIn(row.path)}`,
  },
  {
    title: 'status',
    show: (row) => <Status row={row} />,
    text: (row) => `${textIn(row.status)} ${textIn(row.error_code)}`,
  },
  {
    title: 'duration',
    show: ({ duration_ms }) => durationText(Number(duration_ms)),
    order: ({ duration_ms }) => Number(duration_ms),
  },
  {
    title: 'size',
    show: ({ response_bytes }) => sizeText(Number(response_bytes)),
    order: ({ response_bytes }) => Number(response_bytes),
  },
  { title: 'visitor', show: ({ client_ip }) => textIn(client_ip), text: ({ client_ip }) => textIn(client_ip) },
  {
    title: 'captured',
    show: ({ capture_id }) => (capture_id === null ? '' : 'yes'),
    order: ({ capture_id }) => textIn(capture_id),
  },
]

export function Status({ row: { status, error_code } }: { readonly row: ListedRow }) {
  const isBad = status === null || Number(status) >= 500
  return (
    <span class={isBad ? 'bad' : ''}>
      {status === null ? 'no answer' : textIn(status)} {textIn(error_code)}
    </span>
  )
}
