/** One exchange: request, response and timings, with ways to capture, replay and export it. */

import { useState } from 'preact/hooks'
import type { ListedRow } from './all-rows.ts'
import { ExchangePage, useExchange } from './exchange-content.tsx'
import { ExchangeExport } from './exchange-export.tsx'
import { usePage } from './page-state.ts'
import { ReplayForm } from './replay-form.tsx'
import { textIn } from './text-in.ts'
import { useOutline } from './use-live.ts'
import { visibleText } from './visible-text.ts'

export function ExchangeView({ id }: { readonly id: string }) {
  const live = useExchange(id)
  const outline = useOutline()
  const { value } = live
  const title = value && `${textIn(value.method)} ${visibleText(textIn(value.path)).slice(0, 120)}`
  const actions = value && (
    <>
      {outline && <ExchangeExport id={id} outline={outline} />}
      {value.request === null && <CaptureButton exchange={value} />}
    </>
  )
  return (
    <ExchangePage live={live} title={title} actions={actions}>
      {value && outline?.paths.has('/exchanges/{id}/replay') && <ReplayForm exchange={value} />}
    </ExchangePage>
  )
}

const SECONDS = 600

/** Starts a capture that keeps heads and bodies of the same edge or endpoint for ten minutes. */
function CaptureButton({ exchange: { edge_id, endpoint_id } }: { readonly exchange: ListedRow }) {
  const { api } = usePage()
  const [said, setSaid] = useState('')
  const begin = async () => {
    const of = typeof edge_id === 'string' ? { edge_id } : { endpoint_id }
    const outcome = await api.call('POST', '/captures', { ...of, bodies: true, duration: SECONDS })
    setSaid(outcome.ok ? 'Capturing new requests for ten minutes.' : outcome.fault.text)
  }
  return (
    <>
      <button type="button" onClick={() => void begin()}>
        Capture headers and bodies
      </button>
      <span role="status" class="small">
        {said}
      </span>
    </>
  )
}
