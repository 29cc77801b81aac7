/** Request and response of an exchange; those of a replay beside the original, with differences marked. */
import type { ListedRow } from './all-rows.ts'
import { isRecord } from './api-caller.ts'
import { type AbsenceWords, ExchangeMessage, notCaptured } from './exchange-message.tsx'
import { Freshness, ReadingFault } from './freshness.tsx'
import { linkTo } from './page-location.ts'
import { usePage } from './page-state.ts'
import { SideBySide } from './side-by-side.tsx'
import { CALM_MS, type Live, useLive } from './use-live.ts'

interface ExchangeContentProps {
  readonly exchange: ListedRow
  readonly absent?: AbsenceWords | undefined
}

export function ExchangeContent({ exchange, absent }: ExchangeContentProps) {
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
