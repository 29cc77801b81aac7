/** The modules of an edge or route in the order of execution; each is switched with one click. */
import { useState } from 'preact/hooks'
import type { ListedRow } from './all-rows.ts'
import { type CallFault, isRecord } from './api-caller.ts'
import type { ModuleKind, ResourceKind } from './api-outline.ts'
import { type Draft, draftOf } from './draft.ts'
import { FaultNotice } from './fault-notice.tsx'
import { ConfirmDialog } from './modal.tsx'
import { usePage } from './page-state.ts'
import { SchemaForm } from './schema-form.tsx'

/** Modules that keep visitors out. */
const guards: ReadonlySet<string> = new Set([
  ...['ip_restriction', 'mutual_tls', 'basic_auth', 'user_agent_filter', 'webhook_verification', 'policy'],
  ...['oauth', 'oidc', 'saml'],
])

/** What ends a guard, and how that is called. */
interface Ending {
  readonly verb: 'Switch off' | 'Remove'
  readonly end: () => Promise<CallFault | undefined>
}

interface ModuleListProps {
  readonly kind: Pick<ResourceKind, 'modules'>
  /** The path of the edge or route. */
  readonly path: string
  readonly value: ListedRow
  readonly onDone: () => void
}

export function ModuleList({ kind: { modules }, path, value, onDone }: ModuleListProps) {
  return (
    <section class="card">
      <h2>Modules</h2>
      <p class="soft small">Requests pass through modules in this order, responses in reverse.</p>
      <ol class="modules">
        {modules.map((module) => (
          <ModuleItem
            key={`${path} ${module.name}`}
            module={module}
            path={`${path}/${module.name}`}
            config={value[module.name]}
            onDone={onDone}
          />
        ))}
      </ol>
    </section>
  )
}

interface ModuleItemProps {
  readonly module: ModuleKind
  readonly path: string
  /** As the API shows it; null when it is not set. */
  readonly config: unknown
  readonly onDone: () => void
}

function ModuleItem({ module: { name, form }, path, config, onDone }: ModuleItemProps) {
  const { api } = usePage()
  const [isOpen, setOpen] = useState(false)
  const [fault, setFault] = useState<CallFault>()
  const [ending, setEnding] = useState<Ending>()
  const isSet = isRecord(config)
  const isOn = isSet && config.enabled === true
  const finish = (failed: CallFault | undefined) => {
    setFault(failed)
    if (!failed) onDone()
    return failed
  }
  const put = async (body: Draft) => {
    const outcome = await api.call('PUT', path, body)
    return outcome.ok ? undefined : outcome.fault
  }
  const toggle = async () => finish(await put({ ...draftOf(form, config), enabled: !isOn }))
  const remove = async () => {
    const outcome = await api.call('DELETE', path)
    const failed = finish(outcome.ok ? undefined : outcome.fault)
    if (!failed) setOpen(false)
    return failed
  }
  const save = async (draft: Draft) => {
    const failed = await put(draft)
    if (failed) return failed
    setOpen(false)
    finish(undefined)
    return undefined
  }
  /** Ends the module, or asks first if that lets visitors in. */
  const orAsk = (verb: Ending['verb'], end: Ending['end']) => {
    if (!isOn || !guards.has(name)) return end()
    setEnding({ verb, end })
    return Promise.resolve(undefined)
  }
  return (
    <li class={isOn ? 'is-on' : ''}>
      <div class="module">
        <span class="module-name">{name}</span>
        {isSet ? (
          <button
            type="button"
            role="switch"
            aria-checked={isOn}
            aria-label={name}
            onClick={() => void orAsk('Switch off', toggle)}
          >
            {isOn ? 'on' : 'off'}
          </button>
        ) : (
          <span class="soft small">not set</span>
        )}
        <button type="button" class="quiet" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {isSet ? 'Edit' : 'Set up'}
          <span class="unseen"> {name}</span>
        </button>
        {isSet && (
          <button type="button" class="quiet" onClick={() => void orAsk('Remove', remove)}>
            Remove<span class="unseen"> {name}</span>
          </button>
        )}
      </div>
      <FaultNotice fault={fault} />
      {isOpen && (
        <SchemaForm
          schema={form}
          begin={draftOf(form, config)}
          verb={`Save ${name}`}
          send={(draft) => (draft.enabled === false ? orAsk('Switch off', () => save(draft)) : save(draft))}
        />
      )}
      {ending && (
        <ConfirmDialog
          title={`${ending.verb} ${name}?`}
          verb={ending.verb}
          onConfirm={() => {
            setEnding(undefined)
            void ending.end().then(setFault)
          }}
          onClose={() => setEnding(undefined)}
        >
          Visitors whom it keeps out will be let in immediately.
        </ConfirmDialog>
      )}
    </li>
  )
}
