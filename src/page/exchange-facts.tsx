/** Where an exchange came from, where it went, and how long each part of it took. */
import type { ListedRow } from './all-rows.ts'
import { isRecord } from './api-caller.ts'
import { ExchangeStatus } from './exchange-columns.tsx'
import { PlainText } from './plain-text.tsx'
import { textIn } from './text-in.ts'
import { dateTime, durationText, sizeText } from './time-text.ts'
import { ResourceLink } from './value.tsx'
import { visibleText } from './visible-text.ts'

const links: readonly [field: string, title: string, path: (id: string, row: ListedRow) => string][] = [
  ['edge_id', 'edge', (id) => `/edges/https/${id}`],
  ['route_id', 'route', (id, { edge_id }) => `/edges/https/${textIn(edge_id)}/routes/${id}`],
  ['endpoint_id', 'endpoint', (id) => `/endpoints/${id}`],
  ['tunnel_id', 'tunnel', (id) => `/tunnels/${id}`],
  ['tunnel_session_id', 'session', (id) => `/tunnel_sessions/${id}`],
  ['capture_id', 'capture', (id) => `/captures/${id}`],
]

export function ExchangeFacts({ exchange }: { readonly exchange: ListedRow }) {
  const { started_at, duration_ms, client_ip, protocol, scheme, host, request_bytes, response_bytes } = exchange
  const decided = isRecord(exchange.decided) ? Object.entries(exchange.decided) : []
  return (
    <dl class="card fields">
      <Fact name="response">
        <ExchangeStatus row={exchange} />
        {exchange.is_cut === true && ' (incomplete)'}
      </Fact>
      <Fact name="time">{dateTime(Date.parse(textIn(started_at)))}</Fact>
      <Fact name="duration">
        {durationText(Number(duration_ms))} <Timings timings={exchange.timings} />
      </Fact>
      <Fact name="visitor">
        {textIn(client_ip)}, {textIn(scheme)} {textIn(protocol)} to <bdi>{visibleText(textIn(host))}</bdi>
      </Fact>
      <Fact name="bytes">
        {sizeText(Number(request_bytes))} received, {sizeText(Number(response_bytes))} sent
      </Fact>
      {typeof exchange.tunnel_name === 'string' && (
        <Fact name="tunnel">
          <PlainText text={exchange.tunnel_name} />
        </Fact>
      )}
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

/** One line of a list of `dl`. */
export function Fact({ name, children }: { readonly name: string; readonly children: preact.ComponentChildren }) {
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

/** Each part as a bar, and in words. */
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
