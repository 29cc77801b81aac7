/** Says whether what is shown is of now, and if not, of when. */
import type { Reading } from './polling.ts'
import { clockTime } from './time-text.ts'

export function Freshness({ reading: { value, readAt, fault } }: { readonly reading: Reading<unknown> }) {
  if (value === undefined) return <span class="freshness">{fault ? '' : 'Reading …'}</span>
  if (!fault) return <span class="freshness is-live">live</span>
  return <span class="freshness is-old">as of {clockTime(readAt)}</span>
}

/** Shows why nothing can be shown yet; nothing when there is something to show, or when all is well. */
export function ReadingFault({ reading: { fault } }: { readonly reading: Reading<unknown> }) {
  if (!fault || fault.kind === 'signed_out' || fault.kind === 'unseen') return null
  return (
    <p class="notice is-bad" role="alert">
      {fault.text} {fault.kind === 'away' ? 'Trying again …' : fault.code}
    </p>
  )
}
