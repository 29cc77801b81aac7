/** One exchange of the agent: its heads, bodies and frames, and the form to replay it. */
import { useEffect } from 'preact/hooks'
import type { ListedRow } from '../all-rows.ts'
import { ExchangeContent, useExchange } from '../exchange-content.tsx'
import { ExchangeFacts } from '../exchange-facts.tsx'
import { Freshness, ReadingFault } from '../freshness.tsx'
import { linkTo } from '../page-location.ts'
import { ReplayForm } from '../replay-form.tsx'
import { textIn } from '../text-in.ts'
import { CALM_MS, LIVE_MS } from '../use-live.ts'
import { ViewHead } from '../view-head.tsx'
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
  return (
    <>
      <ViewHead
        title={value ? visibleText(`${textIn(value.method)} ${textIn(value.path)}`.slice(0, 120)) : 'Exchange'}
        note={<Freshness reading={live} />}
      />
      <p>
        <a href={linkTo('/traffic')}>All traffic</a>
      </p>
      <ReadingFault reading={live} />
      {value && (
        <>
          <ExchangeFacts exchange={value} />
          <ReplayForm exchange={value} />
          <ExchangeFrames exchange={value} />
          <ExchangeContent exchange={value} absent={absent} />
        </>
      )}
    </>
  )
}
