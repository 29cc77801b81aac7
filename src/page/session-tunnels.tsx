/** What the agent of a session serves: each tunnel with its public address or labels, and the service behind it. */
import { isRecord } from './api-caller.ts'
import { Freshness, ReadingFault } from './freshness.tsx'
import { PublicUrl } from './live-lists.tsx'
import { textIn } from './text-in.ts'
import { LIVE_MS, useRows } from './use-live.ts'
import { ResourceLink, Value } from './value.tsx'

/** `id` is that of the session. */
export function SessionTunnels({ id }: { readonly id: string }) {
  const live = useRows('/tunnels', LIVE_MS)
  const { value } = live
  const own = value?.rows.filter(({ tunnel_session: session }) => isRecord(session) && session.id === id) ?? []
  return (
    <section class="card">
      <div class="view-head">
        <h2>Tunnels</h2>
        <Freshness reading={live} />
      </div>
      <ReadingFault reading={live} />
      {value && own.length === 0 && <p class="soft">This agent has no tunnels.</p>}
      <ul class="routes">
        {own.map((tunnel) => (
          <li key={textIn(tunnel.id)}>
            {tunnel.public_url ? <PublicUrl url={tunnel.public_url} /> : <Value value={tunnel.labels} />}
            <span>
              <span class="soft small">forwards to</span> <Value value={tunnel.forwards_to} />
            </span>
            <ResourceLink path={`/tunnels/${textIn(tunnel.id)}`} id={textIn(tunnel.id)} />
          </li>
        ))}
      </ul>
    </section>
  )
}
