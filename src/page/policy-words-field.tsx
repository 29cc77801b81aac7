/** The input for a part of a policy: an expression, or the type of an action. */
import type { TextareaHTMLAttributes } from 'preact'
import { CompletingText } from './completing-text.tsx'
import type { PolicyPart } from './policy-part.ts'
import { useOutline } from './use-live.ts'

interface PolicyWordsFieldProps {
  readonly part: PolicyPart
  readonly text: string
  readonly onChange: (text: string) => void
  /** What the field has in common with others of its form. */
  readonly shared: Pick<TextareaHTMLAttributes, 'required' | 'aria-describedby'> & {
    readonly id: string
    readonly 'aria-invalid'?: 'true'
  }
}

export function PolicyWordsField({ part, text, onChange, shared }: PolicyWordsFieldProps) {
  const all = useOutline()?.policyWords ?? []
  if (part === 'expression') {
    const words = all.filter(({ what }) => what !== 'action')
    return <CompletingText text={text} onChange={onChange} words={words} area={{ ...shared, rows: 3 }} />
  }
  return (
    <>
      <input
        {...shared}
        type="text"
        list={`words-${shared.id}`}
        autoComplete="off"
        spellcheck={false}
        value={text}
        onInput={({ currentTarget }) => onChange(currentTarget.value)}
      />
      <datalist id={`words-${shared.id}`}>
        {all
          .filter(({ what }) => what === 'action')
          .map(({ word }) => (
            <option key={word} value={word} />
          ))}
      </datalist>
    </>
  )
}
