/** An editor for whole policies that completes actions, variables and functions. */
import { useId } from 'preact/hooks'
import type { PolicyWord } from './api-outline.ts'
import { COMPLETION_HELP, CompletingText } from './completing-text.tsx'

interface PolicyEditorProps {
  readonly text: string
  readonly onChange: (text: string) => void
  readonly words: readonly PolicyWord[]
  /** Whether the server refused what is written. */
  readonly isFaulty: boolean
}

export function PolicyEditor({ text, onChange, words, isFaulty }: PolicyEditorProps) {
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
