/** Starts a tunnel that lives as long as the agent does. */
import { useState } from 'preact/hooks'
import type { CallFault } from '../api-caller.ts'
import { FaultNotice } from '../fault-notice.tsx'
import { usePage } from '../page-state.ts'

const protocols = ['http', 'tcp', 'tls'] as const

const blank = { addr: '', proto: 'http', name: '' }

export function StartTunnel({ onDone }: { readonly onDone: () => void }) {
  const { api } = usePage()
  const [draft, setDraft] = useState(blank)
  const [fault, setFault] = useState<CallFault>()
  const [isBusy, setBusy] = useState(false)
  const start = async () => {
    setBusy(true)
    const { name, ...rest } = draft
    const outcome = await api.call('POST', '/tunnels', { ...rest, ...(name !== '' && { name }) })
    setBusy(false)
    setFault(outcome.ok ? undefined : outcome.fault)
    if (!outcome.ok) return
    setDraft(blank)
    onDone()
  }
  return (
    <section class="card">
      <h2>Start a tunnel</h2>
      <form
        class="filters"
        onSubmit={(event) => {
          event.preventDefault()
          void start()
        }}
      >
        <label>
          Service (port or address)
          <input
            required
            value={draft.addr}
            spellcheck={false}
            autoComplete="off"
            onInput={({ currentTarget }) => setDraft({ ...draft, addr: currentTarget.value })}
          />
        </label>
        <label>
          Protocol
          <select
            value={draft.proto}
            onChange={({ currentTarget }) => setDraft({ ...draft, proto: currentTarget.value })}
          >
            {protocols.map((proto) => (
              <option key={proto}>{proto}</option>
            ))}
          </select>
        </label>
        <label>
          Name (optional)
          <input
            value={draft.name}
            spellcheck={false}
            autoComplete="off"
            onInput={({ currentTarget }) => setDraft({ ...draft, name: currentTarget.value })}
          />
        </label>
        <button type="submit" disabled={isBusy}>
          Start
        </button>
      </form>
      <FaultNotice fault={fault} />
      <p class="soft small">
        The tunnel ends when the agent stops. To keep it, add it to the agent's configuration file.
      </p>
    </section>
  )
}
