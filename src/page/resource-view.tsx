/** One resource: what it is, its modules, and forms to change or delete it. */
import { useState } from 'preact/hooks'
import type { ListedRow } from './all-rows.ts'
import { isRecord } from './api-caller.ts'
import type { ApiOutline, FoundKind } from './api-outline.ts'
import { CommandButtons } from './command-buttons.tsx'
import { changesIn, type Draft, draftOf } from './draft.ts'
import { EdgeRoutes } from './edge-routes.tsx'
import { Freshness, ReadingFault } from './freshness.tsx'
import { inSentence } from './in-sentence.ts'
import { PublicUrl } from './live-lists.tsx'
import { ConfirmDialog } from './modal.tsx'
import { ModuleList } from './module-list.tsx'
import { linkTo } from './page-location.ts'
import { usePage } from './page-state.ts'
import { nameOf } from './reference-list.tsx'
import { SchemaForm } from './schema-form.tsx'
import { textIn } from './text-in.ts'
import { useCall } from './use-call.ts'
import { CALM_MS, LIVE_MS, useLive, useRows } from './use-live.ts'
import { ResourceLink, Value } from './value.tsx'
import { ViewHead } from './view-head.tsx'
import { visibleText } from './visible-text.ts'

export function ResourceView({ found, outline }: { readonly found: FoundKind; readonly outline: ApiOutline }) {
  const { kind, listPath, id } = found
  const page = usePage()
  const path = `${listPath}/${id}`
  const live = useLive(path, () => page.api.get<ListedRow>(path), kind.update ? CALM_MS : LIVE_MS)
  const [isEditing, setEditing] = useState(false)
  const [isDeleting, setDeleting] = useState(false)
  const { value } = live
  const commands = kind.commands.filter((command) => command !== 'retry' || (value && isOrdered(value)))
  const save = async (draft: Draft) => {
    if (!kind.update) return undefined
    const outcome = await page.api.call<ListedRow>('PATCH', path, changesIn(draftOf(kind.update, value), draft))
    if (!outcome.ok) return outcome.fault
    setEditing(false)
    live.refresh()
    return undefined
  }
  return (
    <>
      <ViewHead title={value ? titleOf(found, value) : kind.title} note={<Freshness reading={live} />}>
        {commands.length > 0 && <CommandButtons path={path} commands={commands} onDone={live.refresh} />}
        {kind.update && value && (
          <button type="button" aria-expanded={isEditing} onClick={() => setEditing(!isEditing)}>
            Edit
          </button>
        )}
        {kind.canDelete && value && (
          <button type="button" class="danger" onClick={() => setDeleting(true)}>
            {endingOf(listPath).verb}
          </button>
        )}
      </ViewHead>
      <p class="soft">
        {kind.canList ? <a href={linkTo(listPath)}>All {inSentence(kind.title)}</a> : <UpLink path={listPath} />}
      </p>
      <ReadingFault reading={live} />
      {isEditing && kind.update && value && (
        <SchemaForm
          schema={kind.update}
          without={kind.moduleFields}
          begin={draftOf(kind.update, value)}
          verb="Save"
          send={save}
        >
          <button type="button" onClick={() => setEditing(false)}>
            Cancel
          </button>
        </SchemaForm>
      )}
      {value && <Fields kind={kind} value={value} />}
      {value && listPath === '/tunnel_sessions' && <SessionTunnels id={id} />}
      {value && kind.modules.length > 0 && <ModuleList kind={kind} path={path} value={value} onDone={live.refresh} />}
      {value && <EdgeRoutes outline={outline} path={path} value={value} />}
      {isDeleting && value && <DeleteDialog found={found} value={value} onClose={() => setDeleting(false)} />}
    </>
  )
}

/** Whether a certificate for it is under order, or waits for another try. */
function isOrdered({ certificate_management_status: status }: ListedRow): boolean {
  const job = isRecord(status) && isRecord(status.provisioning_job) ? status.provisioning_job : undefined
  return job !== undefined && job.error_code !== 'ERR_CERTIFICATES_NOT_MANAGED'
}

/** A route is named by its match, which needs a word before it. */
function titleOf({ listPath }: FoundKind, value: ListedRow): string {
  const name = visibleText(nameOf(value)).slice(0, 100)
  return listPath.endsWith('/routes') ? `Route ${name}` : name
}

/** What a resource without a list belongs to: the edge of a route. */
function UpLink({ path }: { readonly path: string }) {
  return <a href={linkTo(parentOf(path))}>Back to the edge</a>
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/'))
}

/** Every field but the modules, which have a list of their own. */
function Fields({ kind: { view, moduleFields }, value }: Pick<FoundKind, 'kind'> & { readonly value: ListedRow }) {
  const names = [...(view.fields?.keys() ?? Object.keys(value))].filter(
    (name) => !moduleFields.has(name) && name !== 'uri' && name !== 'routes' && value[name] !== undefined,
  )
  return (
    <dl class="card fields">
      {names.map((name) => (
        <div key={name}>
          <dt title={view.fields?.get(name)?.description}>{name.replaceAll('_', ' ')}</dt>
          <dd>
            <Value value={value[name]} most={2000} />
          </dd>
        </div>
      ))}
    </dl>
  )
}

interface DeleteDialogProps {
  readonly found: FoundKind
  readonly value: ListedRow
  readonly onClose: () => void
}

function DeleteDialog({ found: { kind, listPath, id }, value, onClose }: DeleteDialogProps) {
  const { call, fault } = useCall()
  const { verb, question, outcome } = endingOf(listPath)
  const remove = async () => {
    const answer = await call('DELETE', `${listPath}/${id}`)
    if (answer.ok) window.location.hash = linkTo(kind.canList ? listPath : parentOf(listPath))
  }
  return (
    <ConfirmDialog title={question} verb={verb} fault={fault} onConfirm={() => void remove()} onClose={onClose}>
      <bdi>{visibleText(nameOf(value)).slice(0, 200)}</bdi> {outcome}
    </ConfirmDialog>
  )
}

/** What removing a resource is called: most are deleted, a capture is ended. `outcome` follows the name of the resource. */
const deletion = {
  verb: 'Delete',
  question: 'Delete this?',
  outcome: 'will be deleted immediately. This cannot be undone.',
}

const captureEnding = {
  verb: 'End',
  question: 'End this capture?',
  outcome: 'will end immediately. What it captured stays until newer exchanges need the space.',
}

/** `path` is that of the list. */
function endingOf(path: string): typeof deletion {
  return path === '/captures' ? captureEnding : deletion
}

/** `id` is that of the session. */
function SessionTunnels({ id }: { readonly id: string }) {
  const live = useRows('/tunnels', LIVE_MS)
  const { value } = live
  const own = value?.rows.filter(({ tunnel_session: session }) => isRecord(session) && session.id === id) ?? []
  return (
    <section class="card">
      <div class="view-head">
        <h2>Tunnels</h2>
        <Freshness reading={live} />
      </div>
      <ReadingFault reading={live} />
      {value && own.length === 0 && <p class="soft">This agent has no tunnels.</p>}
      <ul class="routes">
        {own.map((tunnel) => (
          <li key={textIn(tunnel.id)}>
            {tunnel.public_url ? <PublicUrl url={tunnel.public_url} /> : <Value value={tunnel.labels} />}
            <span>
              <span class="soft small">forwards to</span> <Value value={tunnel.forwards_to} />
            </span>
            <ResourceLink path={`/tunnels/${textIn(tunnel.id)}`} id={textIn(tunnel.id)} />
          </li>
        ))}
      </ul>
    </section>
  )
}
