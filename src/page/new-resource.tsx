/** The form that creates a resource, and the token that is shown once. */
import { useState } from 'preact/hooks'
import type { ListedRow } from './all-rows.ts'
import type { FoundKind } from './api-outline.ts'
import { CopyButton } from './copy-button.tsx'
import { type Draft, emptyDraft } from './draft.ts'
import type { FormSchema } from './form-schema.ts'
import { Modal } from './modal.tsx'
import { linkTo } from './page-location.ts'
import { usePage } from './page-state.ts'
import { SchemaForm } from './schema-form.tsx'
import { textIn } from './text-in.ts'
import { ViewHead } from './view-head.tsx'

export function NewResource({ kind, listPath }: Pick<FoundKind, 'kind' | 'listPath'>) {
  const page = usePage()
  const [made, setMade] = useState<ListedRow>()
  const { create } = kind
  if (!create) return <p class="notice is-bad">These cannot be created through the API.</p>
  const show = (row: ListedRow) => {
    window.location.hash = linkTo(`${listPath}/${textIn(row.id)}`)
  }
  const send = async (draft: Draft) => {
    const outcome = await page.api.call<ListedRow>('POST', listPath, draft)
    if (!outcome.ok) return outcome.fault
    if (typeof outcome.value.token === 'string') setMade(outcome.value)
    else show(outcome.value)
    return undefined
  }
  return (
    <>
      <ViewHead title={kind.createTitle} />
      {kind.modules.length > 0 && <p class="soft">You can set up its modules after creating it.</p>}
      <SchemaForm schema={create} without={kind.moduleFields} begin={beginning(create)} verb="Create" send={send}>
        {kind.canList && (
          <a class="button" href={linkTo(listPath)}>
            Cancel
          </a>
        )}
      </SchemaForm>
      {made && <ShownOnce token={textIn(made.token)} onClose={() => show(made)} />}
    </>
  )
}

/** Required lists begin with one entry. */
function beginning({ fields, required }: FormSchema): Draft {
  const lists = [...(fields ?? [])].filter(([name, { type }]) => type === 'array' && required.has(name))
  return Object.fromEntries(lists.map(([name, { entries }]) => [name, entries ? [emptyDraft(entries)] : []]))
}

/** A dialog for a token, which the API shows only once. */
function ShownOnce({ token, onClose }: { readonly token: string; readonly onClose: () => void }) {
  return (
    <Modal title="Save this token" onClose={onClose}>
      <p>It will not be shown again. The server keeps only a hash of it.</p>
      <pre class="secret">{token}</pre>
      <div class="actions">
        <CopyButton text={token} what="token" />
        <button type="button" class="primary" onClick={onClose}>
          I have saved it
        </button>
      </div>
    </Modal>
  )
}
