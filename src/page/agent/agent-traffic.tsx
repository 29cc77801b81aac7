/** The exchanges of the agent as they come, with fields to filter them. */
import { useMemo, useState } from 'preact/hooks'
import type { Rows } from '../all-rows.ts'
import { isRecord } from '../api-caller.ts'
import { countText } from '../count-text.ts'
import { exchangeColumns, requestText } from '../exchange-columns.tsx'
import { Freshness, ReadingFault } from '../freshness.tsx'
import { PublicUrls } from '../live-lists.tsx'
import { linkTo } from '../page-location.ts'
import { usePage } from '../page-state.ts'
import { PlainText } from '../plain-text.tsx'
import { type Column, Table } from '../table.tsx'
import { textIn } from '../text-in.ts'
import { TextInput } from '../text-input.tsx'
import type { Live } from '../use-live.ts'
import { ViewHead } from '../view-head.tsx'
import { type AgentFilter, everyExchange, filterExchanges } from './exchange-filter.ts'
import { useAgentLive } from './use-agent-live.ts'

export function AgentTraffic({ reading }: { readonly reading: Live<Rows> }) {
  const { api } = usePage()
  const [filter, setFilter] = useState(everyExchange)
  const { value } = reading
  const rows = useMemo(() => filterExchanges(value?.rows ?? [], filter), [value, filter])
  const found = useMemo(() => value && { rows, isCut: false }, [value, rows])
  const isEmpty = value?.rows.length === 0
  return (
    <>
      <ViewHead title="Traffic" note={<Freshness reading={reading} />}>
        {value && !isEmpty && (
          <button type="button" onClick={() => void api.call('DELETE', '/exchanges')}>
            Clear all
          </button>
        )}
      </ViewHead>
      <ReadingFault reading={reading} />
      {value && !isEmpty && <Filters rows={value} filter={filter} onFilter={setFilter} />}
      <LeftOut />
      <Table
        label="requests"
        live={{ ...reading, value: found }}
        columns={columns}
        empty={isEmpty ? <FirstVisit /> : 'No matching requests.'}
      />
    </>
  )
}

interface FiltersProps {
  readonly rows: Rows
  readonly filter: AgentFilter
  readonly onFilter: (filter: AgentFilter) => void
}

function Filters({ rows: { rows }, filter, onFilter }: FiltersProps) {
  const names = [...new Set([filter.tunnel, ...rows.map(({ tunnel_name }) => textIn(tunnel_name))])].filter(Boolean)
  return (
    <form class="filters" onSubmit={(event) => event.preventDefault()}>
      <TextInput label="Method" value={filter.method} onText={(method) => onFilter({ ...filter, method })} />
      <TextInput
        label="Status (404, 4xx or none)"
        value={filter.status}
        onText={(status) => onFilter({ ...filter, status })}
      />
      <label>
        Tunnel
        <select
          value={filter.tunnel}
          onChange={({ currentTarget }) => onFilter({ ...filter, tunnel: currentTarget.value })}
        >
          <option value="">all</option>
          {names.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </label>
    </form>
  )
}

/** Tells how many requests the agent did not inspect. */
function LeftOut() {
  const count = useAgentLive<{ readonly left_out: number }>('/exchanges?limit=1').value?.left_out ?? 0
  if (count === 0) return null
  return (
    <p class="notice">
      {countText(count, 'requests')} reached the service without being inspected, because too many came at once.
    </p>
  )
}

/** Shown until the first request: the addresses to visit. */
function FirstVisit() {
  const live = useAgentLive<{ readonly tunnels: readonly unknown[] }>('/tunnels')
  const all = (live.value?.tunnels ?? []).filter(isRecord).map(({ public_url }) => textIn(public_url))
  // A tunnel with labels has no address of its own.
  const urls = all.filter((url) => url !== '')
  return (
    <>
      <p>No requests yet. They appear here as they arrive, newest first.</p>
      {urls.length > 0 && <p>Visit one of this agent's public addresses:</p>}
      <PublicUrls urls={urls} />
    </>
  )
}

const columns: readonly Column[] = [
  exchangeColumns.time,
  {
    title: 'request',
    show: (row) => (
      <a href={linkTo(`/traffic/${textIn(row.id)}`)}>
        <code>
          <PlainText text={textIn(row.method)} most={20} />
        </code>{' '}
        <PlainText text={textIn(row.path)} most={90} />
      </a>
    ),
    text: requestText,
  },
  exchangeColumns.status,
  exchangeColumns.duration,
  exchangeColumns.size,
  { title: 'frames', show: ({ frame_count }) => (frame_count === 0 ? '' : textIn(frame_count)) },
  { title: 'visitor', show: visitorOf, text: visitorOf },
  {
    title: 'tunnel',
    show: ({ tunnel_name }) => <PlainText text={textIn(tunnel_name)} most={40} />,
    text: ({ tunnel_name }) => textIn(tunnel_name),
  },
]

function visitorOf({ replay_of, client_ip }: Readonly<Record<string, unknown>>): string {
  return replay_of === null ? textIn(client_ip) : 'replay'
}
