/** One exchange with all that is kept of it, as both pages show it; a replay beside the original, with differences marked. */
import type { ComponentChildren } from 'preact'
import type { ListedRow } from './all-rows.ts'
import { isRecord } from './api-caller.ts'
import { ExchangeFacts } from './exchange-facts.tsx'
import { type AbsenceWords, ExchangeMessage, notCaptured } from './exchange-message.tsx'
import { Freshness, ReadingFault } from './freshness.tsx'
import { linkTo } from './page-location.ts'
import { usePage } from './page-state.ts'
import { SideBySide } from './side-by-side.tsx'
import { CALM_MS, type Live, useLive } from './use-live.ts'
import { ViewHead } from './view-head.tsx'

interface ExchangePageProps extends Pick<ExchangeContentProps, 'absent'> {
  readonly live: Live<ListedRow>
  readonly title: string | undefined
  /** Buttons beside the title. */
  readonly actions?: ComponentChildren
  /** Shown once the exchange is read, before its content. */
  readonly children: ComponentChildren
}

export function ExchangePage({ live, title = 'Exchange', actions, absent, children }: ExchangePageProps) {
  return (
    <>
      <ViewHead title={title} note={<Freshness reading={live} />}>
        {actions}
      </ViewHead>
      <p>
        <a href={linkTo('/traffic')}>All traffic</a>
      </p>
      <ReadingFault reading={live} />
      {live.value && (
        <>
          <ExchangeFacts exchange={live.value} />
          {children}
          <ExchangeContent exchange={live.value} absent={absent} />
        </>
      )}
    </>
  )
}

interface ExchangeContentProps {
  readonly exchange: ListedRow
  readonly absent?: AbsenceWords | undefined
}

function ExchangeContent({ exchange, absent }: ExchangeContentProps) {
  const { replay_of: original } = exchange
  if (typeof original === 'string') return <ReplayContent exchange={exchange} original={original} absent={absent} />
  return (
    <div class="card">
      <h2>Request and response</h2>
      <Messages exchange={exchange} absent={absent} />
    </div>
  )
}

function ReplayContent({ exchange, original, absent }: ExchangeContentProps & { readonly original: string }) {
  const live = useExchange(original)
  return (
    <>
      {live.value && [live.value, exchange].every(isAnswerKept) && <SideBySide first={live.value} replay={exchange} />}
      <div class="beside">
        <div class="card">
          <h2>
            <a href={linkTo(`/traffic/${original}`)}>Original</a>
          </h2>
          <ReadingFault reading={live} />
          <Freshness reading={live} />
          {live.value && <Messages exchange={live.value} absent={absent} />}
        </div>
        <div class="card">
          <h2>Replay</h2>
          <Messages exchange={exchange} absent={absent} />
        </div>
      </div>
    </>
  )
}

/** Whether it is known what the response was, or that there was none. */
function isAnswerKept({ status, response }: ListedRow): boolean {
  return status === null || isRecord(response)
}

function Messages({ exchange: { request, response }, absent = notCaptured }: ExchangeContentProps) {
  if (!isRecord(request) && !isRecord(response)) return <p class="soft">{absent.message}</p>
  return (
    <>
      <ExchangeMessage title="Request" message={request} absent={absent} />
      <ExchangeMessage title="Response" message={response} absent={absent} />
    </>
  )
}

/** An exchange with all that is kept of it. */
export function useExchange(id: string, everyMs = CALM_MS): Live<ListedRow> {
  const { api } = usePage()
  return useLive(id, () => api.get<ListedRow>(`/exchanges/${encodeURIComponent(id)}`), everyMs)
}
