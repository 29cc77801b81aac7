/** Replays an exchange, as it was or edited. */
import { useState } from 'preact/hooks'
import type { ListedRow } from './all-rows.ts'
import { isRecord } from './api-caller.ts'
import { HelpText } from './help-text.tsx'
import { linkTo } from './page-location.ts'
import { usePage } from './page-state.ts'
import { changesOf, requestOf } from './replay-changes.ts'
import { textIn } from './text-in.ts'

export function ReplayForm({ exchange }: { readonly exchange: ListedRow }) {
  const { api } = usePage()
  const before = requestOf(exchange)
  const [draft, setDraft] = useState(before)
  const [isOpen, setOpen] = useState(false)
  const [fault, setFault] = useState('')
  const [isBusy, setBusy] = useState(false)
  // Without the head of the request there is nothing to send.
  if (!isRecord(exchange.request)) return null
  const replay = async (changes: Readonly<Record<string, unknown>>) => {
    setBusy(true)
    const outcome = await api.call<ListedRow>('POST', `/exchanges/${textIn(exchange.id)}/replay`, changes)
    setBusy(false)
    setFault(outcome.ok ? '' : outcome.fault.text)
    if (outcome.ok && typeof outcome.value.id === 'string')
      window.location.hash = linkTo(`/traffic/${outcome.value.id}`)
  }
  const text = (name: 'method' | 'path', label: string) => (
    <label>
      {label}
      <input
        value={draft[name]}
        spellcheck={false}
        onInput={({ currentTarget }) => setDraft({ ...draft, [name]: currentTarget.value })}
      />
    </label>
  )
  const area = (name: 'headers' | 'body', label: string) => (
    <label>
      {label}
      <textarea
        rows={6}
        value={draft[name]}
        spellcheck={false}
        onInput={({ currentTarget }) => setDraft({ ...draft, [name]: currentTarget.value })}
      />
    </label>
  )
  return (
    <section class="card">
      <div class="actions">
        <button type="button" class="primary" disabled={isBusy} onClick={() => void replay({})}>
          Replay
        </button>
        <button type="button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          Edit and replay
        </button>
      </div>
      <div role="alert">
        {fault !== '' && (
          <p class="notice is-bad">
            <HelpText text={fault} />
          </p>
        )}
      </div>
      {isOpen && (
        <form
          class="replay"
          onSubmit={(event) => {
            event.preventDefault()
            void replay(changesOf(before, draft))
          }}
        >
          {text('method', 'Method')}
          {text('path', 'Path and query')}
          {area('headers', 'Headers, one per line')}
          {area('body', 'Body')}
          <button type="submit" disabled={isBusy}>
            Send edited request
          </button>
        </form>
      )}
    </section>
  )
}
