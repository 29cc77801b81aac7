/** The agent's page: the menu, the agent's status, and the current view. */
import type { MenuGroup } from '../menu.ts'
import { PageFrame } from '../page-frame.tsx'
import { usePage } from '../page-state.ts'
import { ViewHead } from '../view-head.tsx'
import { AgentExchange } from './agent-exchange.tsx'
import { AgentTraffic } from './agent-traffic.tsx'
import { AgentTunnels } from './agent-tunnels.tsx'
import { useAgentLive } from './use-agent-live.ts'
import { useLiveExchanges } from './use-events.ts'

const groups: readonly MenuGroup[] = [
  {
    title: 'This agent',
    entries: [
      { path: '/traffic', title: 'Traffic' },
      { path: '/tunnels', title: 'Tunnels' },
    ],
  },
]

interface AgentStatus {
  readonly status: 'online' | 'offline'
  readonly agent_version: string
}

export function AgentApp() {
  const { location, awaySince } = usePage()
  const path = location.value.path === '/' ? '/traffic' : location.value.path
  const status = useAgentLive<AgentStatus>('/status').value
  const version = status && <p class="soft small">Agent {status.agent_version}</p>
  return (
    <PageFrame who="agent" groups={groups} path={path} menuEnd={version}>
      <div role="status">
        {awaySince.value === undefined && status?.status === 'offline' && (
          <p class="notice is-bad">
            The agent lost its connection to the server and is reconnecting. Its tunnels are offline until then.
          </p>
        )}
      </div>
      <AgentView path={path} />
    </PageFrame>
  )
}

function AgentView({ path }: { readonly path: string }) {
  const live = useLiveExchanges()
  if (path === '/traffic') return <AgentTraffic reading={live} />
  if (path === '/tunnels') return <AgentTunnels />
  const [, id] = /^\/traffic\/(\w+)$/.exec(path) ?? []
  if (id === undefined) return <ViewHead title="Page not found" />
  return <AgentExchange key={id} id={id} listed={live.value?.rows.find((row) => row.id === id)} />
}
