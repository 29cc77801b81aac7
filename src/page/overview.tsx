/** The overview: how much is online, what needs attention, and traffic. */
import { useMemo } from 'preact/hooks'
import { type Rows, readRows } from './all-rows.ts'
import { type AttentionInput, attentionOf } from './attention.ts'
import { FirstRequest } from './first-request.tsx'
import { FirstStart } from './first-start.tsx'
import { Freshness, ReadingFault } from './freshness.tsx'
import { linkTo } from './page-location.ts'
import { usePage } from './page-state.ts'
import { PlainText } from './plain-text.tsx'
import { TrafficPlots } from './traffic-plots.tsx'
import { CALM_MS, LIVE_MS, type Live, useLive, useRows } from './use-live.ts'
import { ViewHead } from './view-head.tsx'

export function Overview() {
  const isAdmin = usePage().signedIn.value?.role === 'admin'
  const sessions = useRows('/tunnel_sessions', LIVE_MS)
  const tunnels = useRows('/tunnels', LIVE_MS)
  const endpoints = useRows('/endpoints', LIVE_MS)
  return (
    <>
      <ViewHead title="Overview" note={<Freshness reading={sessions} />} />
      <ReadingFault reading={sessions} />
      <ul class="numbers">
        <Count title="Endpoints" path="/endpoints" live={endpoints} />
        <Count title="Tunnels" path="/tunnels" live={tunnels} />
        <Count title="Sessions" path="/tunnel_sessions" live={sessions} />
        {isAdmin && <NodeCount />}
      </ul>
      {sessions.value?.rows.length === 0 ? <FirstStart /> : <FirstRequest endpoints={endpoints} />}
      <Attention />
      {isAdmin && <TrafficPlots />}
    </>
  )
}

interface CountProps {
  readonly title: string
  readonly path: string
  readonly live: Live<Rows>
}

function Count({ title, path, live: { value, fault } }: CountProps) {
  return (
    <li class={fault ? 'card is-old' : 'card'}>
      <a class="count" href={linkTo(path)}>
        <strong>
          {value ? value.rows.length.toLocaleString('en') : '…'}
          {value?.isCut && '+'}
        </strong>
        <span>{title}</span>
      </a>
    </li>
  )
}

function NodeCount() {
  return <Count title="Nodes" path="/nodes" live={useRows('/nodes', LIVE_MS)} />
}

/** What does not work, or soon will not. */
function Attention() {
  const { api } = usePage()
  const lists: Readonly<Record<keyof AttentionInput, Live<Rows>>> = {
    https: useRows('/edges/https', CALM_MS),
    tls: useRows('/edges/tls', CALM_MS),
    tcp: useRows('/edges/tcp', CALM_MS),
    groups: useRows('/backends/tunnel_group', CALM_MS),
    weighted: useRows('/backends/weighted', CALM_MS),
    failover: useRows('/backends/failover', CALM_MS),
    domains: useRows('/reserved_domains', CALM_MS),
    certificates: useRows('/tls_certificates', CALM_MS),
    authorities: useRows('/certificate_authorities', CALM_MS),
    broken: useLive('/broken_edges', () => readRows(api, '/broken_edges'), CALM_MS),
  }
  const isRead = Object.values(lists).every(({ value }) => value !== undefined)
  const found = useMemo(
    () => attentionOf({ ...rowsOf(lists), now: Date.now() }),
    Object.values(lists).map(({ value }) => value),
  )
  if (!isRead) return null
  return (
    <section class="card">
      <h2>Needs attention</h2>
      {found.length === 0 && <p class="soft">Nothing. Every edge leads somewhere, and no certificate expires soon.</p>}
      {found.length > 0 && (
        <ul class="attention">
          {found.map(({ path, name, why }) => (
            <li key={`${path} ${why}`}>
              <a href={linkTo(path)}>
                <PlainText text={name} most={80} />
              </a>{' '}
              <PlainText text={why} />
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}

function rowsOf(lists: Readonly<Record<keyof AttentionInput, Live<Rows>>>): AttentionInput {
  const rows = Object.entries(lists).map(([name, { value }]) => [name, value?.rows ?? []] as const)
  return Object.fromEntries(rows) as AttentionInput // one for each list
}
