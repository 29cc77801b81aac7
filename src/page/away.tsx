/** Says since when nobody answers the page. */
import { usePage } from './page-state.ts'
import { clockTime } from './time-text.ts'

export function Away({ who }: { readonly who: 'server' | 'agent' }) {
  const since = usePage().awaySince.value
  return (
    <div role="status">
      {since !== undefined && (
        <p class="notice is-bad">
          The {who} has not answered since {clockTime(since)}. What you see is older than that; the page tries again by
          itself.
        </p>
      )}
    </div>
  )
}
