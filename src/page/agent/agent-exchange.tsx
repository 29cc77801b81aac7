/** One exchange of the agent: its heads, bodies and frames, and the form to replay it. */
import { useEffect } from 'preact/hooks'
import type { ListedRow } from '../all-rows.ts'
import { ExchangePage, useExchange } from '../exchange-content.tsx'
import { ReplayForm } from '../replay-form.tsx'
import { textIn } from '../text-in.ts'
import { CALM_MS, LIVE_MS } from '../use-live.ts'
import { visibleText } from '../visible-text.ts'
import { ExchangeFrames } from './exchange-frames.tsx'

/** An agent keeps every head and body, so what is absent never existed. */
const absent = { message: 'No response.', body: 'No body.' }

interface AgentExchangeProps {
  readonly id: string
  /** As the list shows it now; undefined once the agent has dropped it. */
  readonly listed: ListedRow | undefined
}

export function AgentExchange({ id, listed }: AgentExchangeProps) {
  const isOpen = listed?.is_open === true
  const live = useExchange(id, isOpen ? LIVE_MS : CALM_MS)
  // The list is streamed: a change there means that this view is out of date.
  useEffect(() => live.refresh(), [listed?.status, isOpen])
  const { value } = live
  const title = value && visibleText(`${textIn(value.method)} ${textIn(value.path)}`.slice(0, 120))
  return (
    <ExchangePage live={live} title={title} absent={absent}>
      {value && <ReplayForm exchange={value} />}
      {value && <ExchangeFrames exchange={value} />}
    </ExchangePage>
  )
}
