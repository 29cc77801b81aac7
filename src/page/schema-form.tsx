/** A whole form for the body of a call, made from its schema. */
import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { CallFault } from './api-caller.ts'
import { type Draft, faultField } from './draft.ts'
import { FaultNotice } from './fault-notice.tsx'
import type { FormSchema } from './form-schema.ts'
import { usePage } from './page-state.ts'
import { ObjectFields } from './schema-field.tsx'

interface SchemaFormProps {
  readonly schema: FormSchema
  /** Fields that are left out of this form. */
  readonly without?: ReadonlySet<string>
  readonly begin: Draft
  /** The label of the button. */
  readonly verb: string
  /** Sends the draft; resolves with the fault if the API refuses it. */
  readonly send: (draft: Draft) => Promise<CallFault | undefined>
  /** Further buttons. */
  readonly children?: ComponentChildren
}

const nothing: ReadonlySet<string> = new Set()

/** Fields that every resource has and that have no effect; they come last. */
const LAST: ReadonlySet<string> = new Set(['description', 'metadata', 'owner_id'])

export function SchemaForm({ schema, without = nothing, begin, verb, send, children }: SchemaFormProps) {
  const [draft, setDraft] = useState(begin)
  const [fault, setFault] = useState<CallFault>()
  const [isBusy, setBusy] = useState(false)
  const form = useRef<HTMLFormElement>(null)
  useEffect(() => {
    if (!fault) return
    const input = form.current?.querySelector<HTMLElement>('[aria-invalid]')
    if (input) input.focus()
    else form.current?.querySelector('.field-fault')?.scrollIntoView({ block: 'center' })
  }, [fault])
  const isAdmin = usePage().signedIn.value?.role === 'admin'
  const shown = [...(schema.fields ?? [])].filter(
    ([name, { isForAdmins }]) => !without.has(name) && (isAdmin || !isForAdmins),
  )
  // Fields of this kind of resource come first.
  const fields = new Map(shown.toSorted(([a], [b]) => Number(LAST.has(a)) - Number(LAST.has(b))))
  const located = fault && { field: faultField(fault, schema), text: fault.text }
  const submit = async (event: Event) => {
    event.preventDefault()
    setBusy(true)
    setFault(await send(draft))
    setBusy(false)
  }
  return (
    <form ref={form} class="card form" onSubmit={(event) => void submit(event)}>
      <ObjectFields schema={schema} fields={fields} path="" value={draft} onChange={setDraft} fault={located} />
      <FaultNotice fault={fault} code={fault?.code} />
      <div class="actions">
        <button type="submit" class="primary" disabled={isBusy}>
          {verb}
        </button>
        {children}
      </div>
    </form>
  )
}
