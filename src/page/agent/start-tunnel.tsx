/** Starts a tunnel that lives as long as the agent does. */
import { useState } from 'preact/hooks'
import { FaultNotice } from '../fault-notice.tsx'
import { TextInput } from '../text-input.tsx'
import { useCall } from '../use-call.ts'

const protocols = ['http', 'tcp', 'tls'] as const

const blank = { addr: '', proto: 'http', name: '' }

export function StartTunnel({ onDone }: { readonly onDone: () => void }) {
  const { call, fault, isBusy } = useCall()
  const [draft, setDraft] = useState(blank)
  const start = async () => {
    const { name, ...rest } = draft
    const outcome = await call('POST', '/tunnels', { ...rest, ...(name !== '' && { name }) })
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
        <TextInput
          label="Service (port or address)"
          required
          value={draft.addr}
          onText={(addr) => setDraft({ ...draft, addr })}
        />
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
        <TextInput label="Name (optional)" value={draft.name} onText={(name) => setDraft({ ...draft, name })} />
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
