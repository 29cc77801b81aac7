/** The result of a dry run: each module and rule in turn, and what the visitor would get. */
import { PlainText } from './plain-text.tsx'

/** As `POST /policy/explain` answers. */
export interface ShownExplanation {
  readonly steps: readonly ShownStep[]
  readonly outcome: {
    readonly verdict: string
    readonly text: string
    readonly status_code: number | null
    readonly error_code: string | null
    readonly body: string | null
  }
}

interface ShownStep {
  readonly module: string
  readonly phase: string
  readonly outcome: string
  readonly rules: readonly ShownRule[]
}

interface ShownRule {
  readonly name: string
  readonly matched: boolean | null
  readonly expressions: readonly {
    readonly text: string
    readonly value: unknown
    readonly error: string | null
    readonly parts: readonly { readonly text: string; readonly value: unknown }[]
  }[]
  readonly actions: readonly { readonly type: string; readonly outcome: string | null }[]
}

export function ExplanationView({ explanation: { steps, outcome } }: { readonly explanation: ShownExplanation }) {
  return (
    <>
      <p class="verdict">
        <strong>{outcome.verdict}</strong>
        {outcome.status_code !== null && ` with ${outcome.status_code}`}
        {outcome.error_code !== null && ` ${outcome.error_code}`}
      </p>
      <p>
        <PlainText text={outcome.text} />
      </p>
      <ol class="steps">
        {steps.map(({ module, phase, outcome: done, rules }) => (
          <li key={`${module} ${phase}`}>
            <p>
              <code>{module}</code> <span class="soft">{phase}</span> <PlainText text={done} />
            </p>
            {rules.map((rule, i) => (
              <Rule key={`${rule.name} ${i}`} rule={rule} number={i + 1} />
            ))}
          </li>
        ))}
      </ol>
      {outcome.body !== null && outcome.body !== '' && (
        <>
          <h3>Response body</h3>
          <pre>
            <PlainText text={outcome.body} most={4000} />
          </pre>
        </>
      )}
    </>
  )
}

function Rule({ rule, number }: { readonly rule: ShownRule; readonly number: number }) {
  const { name, matched, expressions, actions } = rule
  return (
    <div class="rule">
      <p>
        <strong class={matched ? 'is-on' : ''}>
          {matched === null ? 'not reached' : matched ? 'applies' : 'does not apply'}
        </strong>
        {': '}
        <PlainText text={name === '' ? `rule ${number}` : name} most={100} />
      </p>
      {expressions.map(({ text, value, error, parts }) => (
        <div key={text} class="expression">
          <PlainText text={text} /> = <PlainText text={error ?? JSON.stringify(value)} />
          {parts.length > 0 && (
            <ul>
              {parts.map((part, i) => (
                <li key={`${part.text} ${i}`}>
                  <PlainText text={part.text} /> = <PlainText text={JSON.stringify(part.value)} />
                </li>
              ))}
            </ul>
          )}
        </div>
      ))}
      {actions.map(({ type, outcome }, i) => (
        <p key={`${type} ${i}`}>
          <code>{type}</code> <PlainText text={outcome ?? 'not reached'} />
        </p>
      ))}
    </div>
  )
}
