/** What is online: endpoints, tunnels and sessions, as tables that follow the server. */

import type { ComponentChildren } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import type { ListedRow } from './all-rows.ts'
import { isRecord } from './api-caller.ts'
import { CommandButtons } from './command-buttons.tsx'
import { Freshness, ReadingFault } from './freshness.tsx'
import { linkTo } from './page-location.ts'
import { PlainText } from './plain-text.tsx'
import { type Column, Table } from './table.tsx'
import { textIn } from './text-in.ts'
import { LIVE_MS, useRows } from './use-live.ts'
import { ResourceLink, shortId, textOf, Value } from './value.tsx'
import { ViewHead } from './view-head.tsx'
import { visibleText } from './visible-text.ts'

export function EndpointList() {
  return <LiveList title="Endpoints" path="/endpoints" columns={() => endpointColumns} />
}

export function TunnelList() {
  return <LiveList title="Tunnels" path="/tunnels" columns={() => tunnelColumns} />
}

export function SessionList() {
  const [said, setSaid] = useState('')
  const columns = useMemo(() => (refresh: () => void) => sessionColumns(refresh, setSaid), [])
  return (
    <LiveList
      title="Sessions"
      path="/tunnel_sessions"
      columns={columns}
      // Not in the row of its agent, which may be gone by then.
      note={<div role="status">{said !== '' && <p class="notice">{said}</p>}</div>}
    />
  )
}

interface LiveListProps {
  readonly title: string
  readonly path: string
  readonly columns: (refresh: () => void) => readonly Column[]
  /** Shown above the table. */
  readonly note?: ComponentChildren
}

function LiveList({ title, path, columns, note }: LiveListProps) {
  const live = useRows(path, LIVE_MS)
  const all = useMemo(() => columns(live.refresh), [columns])
  return (
    <>
      <ViewHead title={title} note={<Freshness reading={live} />} />
      <ReadingFault reading={live} />
      {note}
      <Table label={title.toLowerCase()} live={live} columns={all} empty={<NothingOnline />} />
    </>
  )
}

function NothingOnline() {
  return (
    <p>
      Nothing is online. <a href={linkTo('/')}>The overview</a> shows how to start an agent.
    </p>
  )
}

const field = (name: string, title = name.replaceAll('_', ' ')): Column => ({
  title,
  show: (row) => <Value value={row[name]} most={60} />,
  text: (row) => textOf(row, name),
})

const idColumn = (path: string): Column => ({
  title: 'id',
  show: ({ id }) => <ResourceLink path={`${path}/${textIn(id)}`} id={textIn(id)} />,
  text: ({ id }) => textIn(id),
})

const addressColumn: Column = {
  title: 'address',
  show: ({ public_url }) => <PublicUrl url={public_url} />,
  text: (row) => textOf(row, 'public_url'),
}

const endpointColumns: readonly Column[] = [
  addressColumn,
  field('proto', 'protocol'),
  { title: 'served by', show: (row) => <Value value={row.tunnel ?? row.edge} />, text: servedBy },
  field('type'),
  field('name'),
  field('region'),
  field('created_at', 'since'),
  idColumn('/endpoints'),
]

function servedBy({ tunnel, edge }: ListedRow): string {
  return [tunnel, edge].map((each) => (isRecord(each) ? textIn(each.id) : '')).join(' ')
}

const tunnelColumns: readonly Column[] = [
  addressColumn,
  field('labels'),
  field('forwards_to'),
  field('proto', 'protocol'),
  field('tunnel_session', 'session'),
  field('region'),
  field('started_at', 'since'),
  idColumn('/tunnels'),
]

/** Commands of the API, as it documents them for sessions. */
const COMMANDS = ['restart', 'stop', 'update']

const sessionColumns = (refresh: () => void, say: (said: string) => void): readonly Column[] => [
  idColumn('/tunnel_sessions'),
  field('ip', 'from'),
  field('os'),
  field('agent_version', 'agent'),
  field('transport'),
  field('region'),
  field('credential'),
  field('started_at', 'since'),
  {
    title: 'actions',
    show: ({ id, ip }) => (
      <CommandButtons
        path={`/tunnel_sessions/${textIn(id)}`}
        commands={COMMANDS}
        onDone={refresh}
        onSaid={(said) => say(`${shortId(textIn(id))} at ${textIn(ip)}: ${said}`)}
      />
    ),
  },
]

export function PublicUrls({ urls }: { readonly urls: readonly string[] }) {
  return (
    <ul>
      {urls.map((url) => (
        <li key={url}>
          <PublicUrl url={url} />
        </li>
      ))}
    </ul>
  )
}

/** A link for HTTP addresses; others are text, since a browser cannot open them. */
export function PublicUrl({ url }: { readonly url: unknown }) {
  if (typeof url !== 'string' || url === '') return <Value value={undefined} />
  if (!/^https?:\/\//.test(url)) return <PlainText text={url} most={80} />
  return (
    <a href={url} target="_blank" rel="noopener noreferrer">
      <bdi>{visibleText(url)}</bdi>
    </a>
  )
}
