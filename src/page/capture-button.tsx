/** Starts a capture that keeps heads and bodies of the same edge or endpoint for ten minutes. */
import { useState } from 'preact/hooks'
import type { ListedRow } from './all-rows.ts'
import { usePage } from './page-state.ts'

const SECONDS = 600

export function CaptureButton({ exchange: { edge_id, endpoint_id } }: { readonly exchange: ListedRow }) {
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
