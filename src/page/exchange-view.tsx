/** One exchange: request, response and timings, with ways to capture, replay and export it. */
import { CaptureButton } from './capture-button.tsx'
import { ExchangeContent, useExchange } from './exchange-content.tsx'
import { ExchangeExport } from './exchange-export.tsx'
import { ExchangeFacts } from './exchange-facts.tsx'
import { Freshness, ReadingFault } from './freshness.tsx'
import { linkTo } from './page-location.ts'
import { ReplayForm } from './replay-form.tsx'
import { textIn } from './text-in.ts'
import { useOutline } from './use-live.ts'
import { ViewHead } from './view-head.tsx'
import { visibleText } from './visible-text.ts'

export function ExchangeView({ id }: { readonly id: string }) {
  const live = useExchange(id)
  const outline = useOutline()
  const { value } = live
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
          <ExchangeFacts exchange={value} />
          {outline?.paths.has('/exchanges/{id}/replay') && <ReplayForm exchange={value} />}
          <ExchangeContent exchange={value} />
        </>
      )}
    </>
  )
}
