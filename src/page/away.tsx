/** Says since when the server or agent has not responded. */
import { usePage } from './page-state.ts'
import { clockTime } from './time-text.ts'

export function Away({ who }: { readonly who: 'server' | 'agent' }) {
  const since = usePage().awaySince.value
  return (
    <div role="status">
      {since !== undefined && (
        <p class="notice is-bad">
          The {who} has not responded since {clockTime(since)}. The data shown is older than that. Retrying …
        </p>
      )}
    </div>
  )
}
