/** Leads a newcomer to the first tunnel: the command for an agent, with the real address and a token created on a click. */

import { useState } from 'preact/hooks'
import { agentCommand } from './agent-command.ts'
import type { ListedRow } from './all-rows.ts'
import { CopyButton } from './copy-button.tsx'
import { FaultNotice } from './fault-notice.tsx'
import { usePage } from './page-state.ts'
import { textIn } from './text-in.ts'
import { useCall } from './use-call.ts'
import { CALM_MS, useLive } from './use-live.ts'

interface Readyz {
  readonly addresses: Readonly<Record<string, string>>
}

export function FirstStart() {
  const { api } = usePage()
  const readiness = useLive('/readyz', () => api.get<Readyz>('/readyz'), CALM_MS)
  const [token, setToken] = useState('')
  const { call, fault } = useCall()
  const makeToken = async () => {
    const outcome = await call<ListedRow>('POST', '/credentials', {
      description: 'created from the dashboard overview',
    })
    if (outcome.ok) setToken(textIn(outcome.value.token))
  }
  const agents = readiness.value?.addresses.agents
  if (agents === undefined) return null
  const command = agentCommand({ agents, pageHost: window.location.hostname, token })
  return (
    <section class="card first-start">
      <h2>Start an agent</h2>
      <p>
        Nothing is online yet. An agent runs next to your service and gives it a public address. For a service on port
        3000, run:
      </p>
      <pre class="command">{command}</pre>
      <div class="actions">
        {token === '' ? (
          <button type="button" class="primary" onClick={() => void makeToken()}>
            Create an authtoken and insert it
          </button>
        ) : (
          <CopyButton text={command} what="command" />
        )}
      </div>
      <FaultNotice fault={fault} />
      <p class="soft small">
        <code>ca.pem</code> is in the server's data folder. Omit <code>--ca</code> if the agent's machine already trusts
        the server's certificate. The token is shown only once. When the agent is online, its address appears under
        Endpoints.
      </p>
    </section>
  )
}
