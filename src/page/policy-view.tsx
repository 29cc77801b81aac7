/** A dry run of a policy on a request that the user describes, which stores and sends nothing. */
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { COMPLETION_HELP, CompletingText, type CompletingTextProps } from './completing-text.tsx'
import type { Draft } from './draft.ts'
import { ExplanationView, type ShownExplanation } from './explanation.tsx'
import { FaultNotice } from './fault-notice.tsx'
import { SchemaField } from './schema-field.tsx'
import { useCall } from './use-call.ts'
import { useOutline } from './use-live.ts'
import { ViewHead } from './view-head.tsx'

const BEGINNING = `on_http_request:
  - name: keep strangers out
    expressions:
      - req.url.path.startsWith('/admin')
    actions:
      - type: deny
`

/** The parts of a description, in the order of the form. */
const PARTS = ['request', 'connection', 'login', 'response']

export function PolicyView() {
  const { call, fault, isBusy } = useCall()
  const outline = useOutline()
  const [text, setText] = useState(BEGINNING)
  const [described, setDescribed] = useState<Draft>({ request: { url: 'https://shop.example.com/admin' } })
  const [explanation, setExplanation] = useState<ShownExplanation>()
  const shown = useRef<HTMLElement>(null)
  // On a phone the result is below a long form.
  useEffect(() => {
    if (explanation) shown.current?.scrollIntoView({ block: 'nearest' })
  }, [explanation])
  const explain = async (event: Event) => {
    event.preventDefault()
    const body = { traffic_policy: { value: text }, ...described }
    const outcome = await call<ShownExplanation>('POST', '/policy/explain', body)
    setExplanation(outcome.ok ? outcome.value : undefined)
  }
  const isPolicyFault = fault !== undefined && /^(traffic_)?policy/.test(fault.field)
  return (
    <>
      <ViewHead title="Policy" />
      <p class="soft">
        Dry run: the server evaluates the policy for the request that you describe. Nothing is stored, and no other
        service is contacted. To use the policy, put it into the <code>policy</code> module of a route or an edge.
      </p>
      <div class="beside">
        <form class="card" onSubmit={(event) => void explain(event)}>
          <PolicyEditor text={text} onChange={setText} words={outline?.policyWords ?? []} isFaulty={isPolicyFault} />
          <FaultNotice fault={fault} code={fault?.code} />
          <div class="actions">
            <button type="submit" class="primary" disabled={isBusy}>
              Explain
            </button>
          </div>
          {PARTS.map((name) => {
            const schema = outline?.explain?.fields?.get(name)
            return (
              schema && (
                <SchemaField
                  key={name}
                  schema={schema}
                  name={name}
                  path={name}
                  value={described[name]}
                  onChange={(value) => setDescribed({ ...described, [name]: value })}
                  isRequired={false}
                  fault={fault}
                />
              )
            )
          })}
        </form>
        <section class="card" aria-live="polite" ref={shown}>
          <h2>What would happen</h2>
          {explanation ? (
            <ExplanationView explanation={explanation} />
          ) : (
            <p class="soft">{isBusy ? 'Evaluating …' : 'Click Explain to see what each module and rule would do.'}</p>
          )}
        </section>
      </div>
    </>
  )
}

interface PolicyEditorProps extends Pick<CompletingTextProps, 'text' | 'onChange' | 'words'> {
  /** Whether the server refused what is written. */
  readonly isFaulty: boolean
}

/** An editor for whole policies that completes actions, variables and functions. */
function PolicyEditor({ text, onChange, words, isFaulty }: PolicyEditorProps) {
  const id = useId()
  const area = {
    id: `${id}-text`,
    rows: 18,
    'aria-describedby': `${id}-help`,
    ...(isFaulty && { 'aria-invalid': 'true' as const }),
  }
  return (
    <div class="field">
      <label for={area.id}>Policy (YAML or JSON)</label>
      <CompletingText text={text} onChange={onChange} words={words} area={area} />
      <p class="help" id={`${id}-help`}>
        {COMPLETION_HELP}
      </p>
    </div>
  )
}
