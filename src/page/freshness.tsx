/** Says whether the data shown is live, and if not, from when it is. */
import type { Reading } from './polling.ts'
import { clockTime } from './time-text.ts'

export function Freshness({ reading: { value, readAt, fault } }: { readonly reading: Reading<unknown> }) {
  if (value === undefined) return <span class="freshness">{fault ? '' : 'Loading …'}</span>
  if (!fault) return <span class="freshness is-live">live</span>
  return <span class="freshness is-old">as of {clockTime(readAt)}</span>
}

/** Says why the latest read failed; renders nothing if it did not. */
export function ReadingFault({ reading: { fault } }: { readonly reading: Reading<unknown> }) {
  if (!fault || fault.kind === 'signed_out' || fault.kind === 'unseen') return null
  return (
    <p class="notice is-bad" role="alert">
      {fault.text} {fault.kind === 'away' ? 'Retrying …' : fault.code}
    </p>
  )
}
