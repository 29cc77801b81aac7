/** The latest requests of visitors, as they come. */
import { useState } from 'preact/hooks'
import { exchangeColumns, requestText } from './exchange-columns.tsx'
import type { ExchangeFilters } from './exchange-feed.ts'
import { Freshness, ReadingFault } from './freshness.tsx'
import { linkTo } from './page-location.ts'
import { usePage } from './page-state.ts'
import { PlainText } from './plain-text.tsx'
import { type Column, Table } from './table.tsx'
import { textIn } from './text-in.ts'
import { TextInput } from './text-input.tsx'
import { useExchanges } from './use-exchanges.ts'
import { useOutline } from './use-live.ts'
import { ViewHead } from './view-head.tsx'

const everything: ExchangeFilters = { method: '', path: '', status: '', edge_id: '', endpoint_id: '' }

const labels: readonly [name: keyof ExchangeFilters, label: string][] = [
  ['method', 'Method'],
  ['path', 'Path begins with'],
  ['status', 'Status'],
  ['edge_id', 'Edge'],
  ['endpoint_id', 'Endpoint'],
]

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
  readonly hasCaptures: boolean
}

function Exchanges({ filters, onFilters, hasCaptures }: ExchangesProps) {
  const live = useExchanges(filters)
  return (
    <>
      <ViewHead title="Traffic" note={<Freshness reading={live} />}>
        {hasCaptures && <a href={linkTo('/captures')}>Captures</a>}
      </ViewHead>
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        {labels.map(([name, label]) => (
          // Half a status or id matches nothing.
          <TextInput
            key={name}
            label={label}
            value={filters[name]}
            isLazy
            onText={(text) => onFilters({ ...filters, [name]: text.trim() })}
          />
        ))}
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

const columns: readonly Column[] = [
  { ...exchangeColumns.time, order: ({ started_at }) => textIn(started_at) },
  {
    title: 'request',
    show: (row) => (
      <a href={linkTo(`/traffic/${textIn(row.id)}`)}>
        <code>{textIn(row.method)}</code> <PlainText text={`${textIn(row.host)}${textIn(row.path)}`} most={90} />
      </a>
    ),
    text: requestText,
  },
  exchangeColumns.status,
  { ...exchangeColumns.duration, order: ({ duration_ms }) => Number(duration_ms) },
  { ...exchangeColumns.size, order: ({ response_bytes }) => Number(response_bytes) },
  { title: 'visitor', show: ({ client_ip }) => textIn(client_ip), text: ({ client_ip }) => textIn(client_ip) },
  {
    title: 'captured',
    show: ({ capture_id }) => (capture_id === null ? '' : 'yes'),
    order: ({ capture_id }) => textIn(capture_id),
  },
]
