/** One exchange: what came, what went back, how long each part took, and the way to play it again. */
import type { ListedRow } from './all-rows.ts'
import { isRecord } from './api-caller.ts'
import { CaptureButton } from './capture-button.tsx'
import { ExchangeExport } from './exchange-export.tsx'
import { ExchangeMessage } from './exchange-message.tsx'
import { Freshness, ReadingFault } from './freshness.tsx'
import { linkTo } from './page-location.ts'
import { usePage } from './page-state.ts'
import { ReplayForm } from './replay-form.tsx'
import { textIn } from './text-in.ts'
import { dateTime, durationText, sizeText } from './time-text.ts'
import { Status } from './traffic-view.tsx'
import { CALM_MS, useLive, useOutline } from './use-live.ts'
import { ResourceLink } from './value.tsx'
import { ViewHead } from './view-head.tsx'
import { visibleText } from './visible-text.ts'

export function ExchangeView({ id }: { readonly id: string }) {
  const live = useExchange(id)
  const outline = useOutline()
  const { value } = live
  const original = value && typeof value.replay_of === 'string' ? value.replay_of : ''
  return (
    <>
      <ViewHead
        title={value ? `${textIn(value.method)} ${visibleText(textIn(value.path)).slice(0, 120)}` : 'Exchange'}
        note={<Freshness reading={live} />}
      >
        {value && outline && <ExchangeExport id={id} outline={outline} />}
        {value && value.request === null && <CaptureButton exchange={value} />}
      </ViewHead>
      <p>
        <a href={linkTo('/traffic')}>All traffic</a>
      </p>
      <ReadingFault reading={live} />
      {value && (
        <>
          <Facts exchange={value} />
          {outline?.paths.has('/exchanges/{id}/replay') && <ReplayForm exchange={value} />}
          <div class="beside">
            <div class="card">
              <h2>{original === '' ? 'What passed' : 'This replay'}</h2>
              <ExchangeMessage title="Request" message={value.request} />
              <ExchangeMessage title="Answer" message={value.response} />
            </div>
            {original !== '' && <Original id={original} />}
          </div>
        </>
      )}
    </>
  )
}

/** Beside a replay, what it repeated. */
function Original({ id }: { readonly id: string }) {
  const live = useExchange(id)
  return (
    <div class="card">
      <h2>
        What it repeated: <a href={linkTo(`/traffic/${id}`)}>the original</a>
      </h2>
      <ReadingFault reading={live} />
      {live.value && (
        <>
          <p>
            <Status row={live.value} /> in {durationText(Number(live.value.duration_ms))}
          </p>
          <ExchangeMessage title="Request" message={live.value.request} />
          <ExchangeMessage title="Answer" message={live.value.response} />
        </>
      )}
    </div>
  )
}

function useExchange(id: string) {
  const { api } = usePage()
  return useLive(id, () => api.get<ListedRow>(`/exchanges/${id}`), CALM_MS)
}

const links: readonly [field: string, title: string, path: (id: string, row: ListedRow) => string][] = [
  ['edge_id', 'edge', (id) => `/edges/https/${id}`],
  ['route_id', 'route', (id, { edge_id }) => `/edges/https/${textIn(edge_id)}/routes/${id}`],
  ['endpoint_id', 'endpoint', (id) => `/endpoints/${id}`],
  ['tunnel_id', 'tunnel', (id) => `/tunnels/${id}`],
  ['tunnel_session_id', 'session', (id) => `/tunnel_sessions/${id}`],
  ['capture_id', 'capture', (id) => `/captures/${id}`],
]

function Facts({ exchange }: { readonly exchange: ListedRow }) {
  const { started_at, duration_ms, client_ip, protocol, scheme, host, request_bytes, response_bytes } = exchange
  const decided = isRecord(exchange.decided) ? Object.entries(exchange.decided) : []
  return (
    <dl class="card fields">
      <Fact name="answer">
        <Status row={exchange} />
        {exchange.is_cut === true && ' (cut off before its end)'}
      </Fact>
      <Fact name="when">{dateTime(Date.parse(textIn(started_at)))}</Fact>
      <Fact name="took">
        {durationText(Number(duration_ms))} <Timings timings={exchange.timings} />
      </Fact>
      <Fact name="visitor">
        {textIn(client_ip)}, {textIn(scheme)} {textIn(protocol)} to <bdi>{visibleText(textIn(host))}</bdi>
      </Fact>
      <Fact name="bytes">
        {sizeText(Number(request_bytes))} came, {sizeText(Number(response_bytes))} went
      </Fact>
      {links.map(([field, title, path]) => {
        const id = exchange[field]
        return (
          typeof id === 'string' && (
            <Fact key={field} name={title}>
              <ResourceLink path={path(id, exchange)} id={id} />
            </Fact>
          )
        )
      })}
      {decided.map(([name, value]) => (
        <Fact key={name} name={name}>
          <bdi>{visibleText(textIn(value))}</bdi>
        </Fact>
      ))}
    </dl>
  )
}

function Fact({ name, children }: { readonly name: string; readonly children: preact.ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}

const parts: readonly [field: string, what: string][] = [
  ['modules_ms', 'modules'],
  ['dial_ms', 'dial'],
  ['wait_ms', 'wait'],
  ['receive_ms', 'receive'],
]

/** Each part as a length, and in words. */
function Timings({ timings }: { readonly timings: unknown }) {
  if (!isRecord(timings)) return null
  const known = parts.flatMap(([field, what]) => {
    const ms = timings[field]
    return typeof ms === 'number' ? [{ what, ms }] : []
  })
  return (
    <span class="timings">
      {known.map(({ what, ms }) => (
        <span key={what} class="timing" style={{ flexGrow: ms }}>
          {what} {durationText(ms)}
        </span>
      ))}
    </span>
  )
}
