/** Leads a newcomer to the first tunnel: the command for an agent, with the real address and a token made on a click. */

import { useState } from 'preact/hooks'
import { agentCommand } from './agent-command.ts'
import type { ListedRow } from './all-rows.ts'
import { CopyButton } from './copy-button.tsx'
import { usePage } from './page-state.ts'
import { textIn } from './text-in.ts'
import { CALM_MS, useLive } from './use-live.ts'

interface Readyz {
  readonly addresses: Readonly<Record<string, string>>
}

export function FirstStart() {
  const { api } = usePage()
  const readiness = useLive('/readyz', () => api.get<Readyz>('/readyz'), CALM_MS)
  const [token, setToken] = useState('')
  const [fault, setFault] = useState('')
  const makeToken = async () => {
    const outcome = await api.call<ListedRow>('POST', '/credentials', {
      description: 'made on the overview of the dashboard',
    })
    setFault(outcome.ok ? '' : outcome.fault.text)
    if (outcome.ok) setToken(textIn(outcome.value.token))
  }
  const agents = readiness.value?.addresses.agents
  if (agents === undefined) return null
  const command = agentCommand({ agents, pageHost: window.location.hostname, token })
  return (
    <section class="card first-start">
      <h2>Start an agent</h2>
      <p>
        Nothing is online yet. An agent runs beside your service and gives it a public address. For a service on port
        3000:
      </p>
      <pre class="command">{command}</pre>
      <div class="actions">
        {token === '' ? (
          <button type="button" class="primary" onClick={() => void makeToken()}>
            Make an authtoken and put it in
          </button>
        ) : (
          <CopyButton text={command} what="the command" />
        )}
      </div>
      <div role="alert">{fault !== '' && <p class="notice is-bad">{fault}</p>}</div>
      <p class="soft small">
        <code>ca.pem</code> lies in the data folder of the server; leave <code>--ca</code> out where its certificate is
        trusted anyway. The token is shown here alone and not again. Once the agent is online, its address appears under
        Endpoints by itself.
      </p>
    </section>
  )
}
