/** Leads from the first agent to the first request: which addresses to visit, then the request itself. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { ListedRow, Rows } from './all-rows.ts'
import { isRecord } from './api-caller.ts'
import { ExchangeStatus } from './exchange-columns.tsx'
import { PublicUrls } from './live-lists.tsx'
import { linkTo } from './page-location.ts'
import { usePage } from './page-state.ts'
import { PlainText } from './plain-text.tsx'
import { textIn } from './text-in.ts'
import { durationText } from './time-text.ts'
import { LIVE_MS, type Live, useLive } from './use-live.ts'

/** How many addresses are offered. */
const OFFERED = 5

/** Renders nothing where there were requests before. */
export function FirstRequest({ endpoints }: { readonly endpoints: Live<Rows> }) {
  const [first, setFirst] = useState<ListedRow | 'none'>()
  if (first === 'none') return null
  if (first) return <Came exchange={first} />
  const urls = (endpoints.value?.rows ?? []).map(({ public_url }) => textIn(public_url)).filter(isVisitable)
  if (urls.length === 0) return null
  return <Awaited urls={urls} onFound={(exchange, hasWaited) => setFirst(hasWaited && exchange ? exchange : 'none')} />
}

/** Whether a browser can open it; a wildcard names no host to visit. */
function isVisitable(url: string): boolean {
  return /^https?:\/\/[^*]+$/.test(url)
}

interface AwaitedProps {
  readonly urls: readonly string[]
  /** `hasWaited`: the page has shown that there was no request yet. Without an exchange, none will ever come. */
  readonly onFound: (exchange: ListedRow | undefined, hasWaited: boolean) => void
}

function Awaited({ urls, onFound }: AwaitedProps) {
  const { api } = usePage()
  const path = '/exchanges?limit=1'
  const { value, fault } = useLive(path, () => api.get<{ readonly exchanges: readonly unknown[] }>(path), LIVE_MS)
  const hasWaited = useRef(false)
  const newest = value?.exchanges.find(isRecord)
  useEffect(() => {
    // A server that keeps no exchanges refuses the call.
    if (newest || fault?.kind === 'refused') onFound(newest, hasWaited.current)
    else if (value) hasWaited.current = true
  }, [value, fault])
  if (!value || newest) return null
  return (
    <section class="card">
      <h2>Send the first request</h2>
      <p>An agent is online. Visit one of its public addresses, and the first request appears here:</p>
      <PublicUrls urls={urls.slice(0, OFFERED)} />
    </section>
  )
}

function Came({ exchange }: { readonly exchange: ListedRow }) {
  return (
    <section class="card">
      <h2>First request received</h2>
      <p>
        <a href={linkTo(`/traffic/${textIn(exchange.id)}`)}>
          <code>{textIn(exchange.method)}</code>{' '}
          <PlainText text={`${textIn(exchange.host)}${textIn(exchange.path)}`} most={90} />
        </a>{' '}
        was answered with <ExchangeStatus row={exchange} /> in {durationText(Number(exchange.duration_ms))}. See all
        requests under <a href={linkTo('/traffic')}>Traffic</a>.
      </p>
    </section>
  )
}
