/** Replays an exchange, as it was or edited. */
import { useState } from 'preact/hooks'
import type { ListedRow } from './all-rows.ts'
import { isRecord } from './api-caller.ts'
import { FaultNotice } from './fault-notice.tsx'
import { linkTo } from './page-location.ts'
import { changesOf, requestOf } from './replay-changes.ts'
import { textIn } from './text-in.ts'
import { useCall } from './use-call.ts'

export function ReplayForm({ exchange }: { readonly exchange: ListedRow }) {
  const { call, fault, isBusy } = useCall()
  const before = requestOf(exchange)
  const [draft, setDraft] = useState(before)
  const [isOpen, setOpen] = useState(false)
  // Without the head of the request there is nothing to send.
  if (!isRecord(exchange.request)) return null
  const replay = async (changes: Readonly<Record<string, unknown>>) => {
    const outcome = await call<ListedRow>('POST', `/exchanges/${textIn(exchange.id)}/replay`, changes)
    if (outcome.ok && typeof outcome.value.id === 'string')
      window.location.hash = linkTo(`/traffic/${outcome.value.id}`)
  }
  const field = (name: keyof typeof draft) => ({
    value: draft[name],
    spellcheck: false,
    onInput: ({ currentTarget: { value } }: { readonly currentTarget: { readonly value: string } }) =>
      setDraft({ ...draft, [name]: value }),
  })
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
      <FaultNotice fault={fault} />
      {isOpen && (
        <form
          class="replay"
          onSubmit={(event) => {
            event.preventDefault()
            void replay(changesOf(before, draft))
          }}
        >
          <label>
            Method
            <input {...field('method')} />
          </label>
          <label>
            Path and query
            <input {...field('path')} />
          </label>
          <label>
            Headers, one per line
            <textarea rows={6} {...field('headers')} />
          </label>
          <label>
            Body
            <textarea rows={6} {...field('body')} />
          </label>
          <button type="submit" disabled={isBusy}>
            Send edited request
          </button>
        </form>
      )}
    </section>
  )
}
