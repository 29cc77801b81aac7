/** The exchanges of the agent as they come, with fields to filter them. */
import { useMemo, useState } from 'preact/hooks'
import type { Rows } from '../all-rows.ts'
import { isRecord } from '../api-caller.ts'
import { countText } from '../count-text.ts'
import { ExchangeStatus } from '../exchange-status.tsx'
import { Freshness, ReadingFault } from '../freshness.tsx'
import { PublicUrl } from '../live-lists.tsx'
import { linkTo } from '../page-location.ts'
import { usePage } from '../page-state.ts'
import { PlainText } from '../plain-text.tsx'
import { type Column, Table } from '../table.tsx'
import { textIn } from '../text-in.ts'
import { clockTime, durationText, sizeText } from '../time-text.ts'
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
  const field = (name: 'method' | 'status', label: string) => (
    <label>
      {label}
      <input
        value={filter[name]}
        spellcheck={false}
        autoComplete="off"
        onInput={({ currentTarget }) => onFilter({ ...filter, [name]: currentTarget.value })}
      />
    </label>
  )
  return (
    <form class="filters" onSubmit={(event) => event.preventDefault()}>
      {field('method', 'Method')}
      {field('status', 'Status (404, 4xx or none)')}
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
      <ul>
        {urls.map((url) => (
          <li key={url}>
            <PublicUrl url={url} />
          </li>
        ))}
      </ul>
    </>
  )
}

const columns: readonly Column[] = [
  { title: 'time', show: ({ started_at }) => clockTime(Date.parse(textIn(started_at))) },
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
    text: (row) => `${textIn(row.method)} ${textIn(row.host)}${textIn(row.path)}`,
  },
  {
    title: 'status',
    show: (row) => <ExchangeStatus row={row} />,
    text: (row) => `${textIn(row.status)} ${textIn(row.error_code)}`,
  },
  { title: 'duration', show: (row) => (row.is_open === true ? '…' : durationText(Number(row.duration_ms))) },
  { title: 'size', show: ({ response_bytes }) => sizeText(Number(response_bytes)) },
  { title: 'frames', show: ({ frame_count }) => (frame_count === 0 ? '' : textIn(frame_count)) },
  { title: 'visitor', show: (row) => visitorOf(row), text: (row) => visitorOf(row) },
  {
    title: 'tunnel',
    show: ({ tunnel_name }) => <PlainText text={textIn(tunnel_name)} most={40} />,
    text: ({ tunnel_name }) => textIn(tunnel_name),
  },
]

function visitorOf({ replay_of, client_ip }: Readonly<Record<string, unknown>>): string {
  return replay_of === null ? textIn(client_ip) : 'replay'
}
