/** The agent's page: the menu, the agent's status, and the current view. */
import { Away } from '../away.tsx'
import type { MenuGroup } from '../menu.ts'
import { usePage } from '../page-state.ts'
import { SideMenu } from '../side-menu.tsx'
import { ThemeSwitch } from '../theme-switch.tsx'
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
  return (
    <div class="frame">
      <button type="button" class="skip" onClick={() => document.getElementById('main')?.focus()}>
        Skip to content
      </button>
      <SideMenu groups={groups} path={path}>
        <ThemeSwitch />
        {status && <p class="soft small">Agent {status.agent_version}</p>}
      </SideMenu>
      <main id="main" tabIndex={-1}>
        <Away who="agent" />
        <div role="status">
          {awaySince.value === undefined && status?.status === 'offline' && (
            <p class="notice is-bad">
              The agent lost its connection to the server and is reconnecting. Its tunnels are offline until then.
            </p>
          )}
        </div>
        <AgentView path={path} />
      </main>
    </div>
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
