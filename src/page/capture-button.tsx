/** Begins a capture: heads and bodies of what comes next to the same address are kept for ten minutes. */
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
    setSaid(outcome.ok ? 'What comes now is kept, for ten minutes.' : outcome.fault.text)
  }
  return (
    <>
      <button type="button" onClick={() => void begin()}>
        Keep heads and bodies from now on
      </button>
      <span role="status" class="small">
        {said}
      </span>
    </>
  )
}
