/** A text area with completion for the words of policies. */
import type { TextareaHTMLAttributes } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { PolicyWord } from './api-outline.ts'
import { type Completion, complete, completionAt } from './completion.ts'

export interface CompletingTextProps {
  readonly text: string
  readonly onChange: (text: string) => void
  readonly words: readonly PolicyWord[]
  /** What else the text area has, such as its id. */
  readonly area: TextareaHTMLAttributes
}

export const COMPLETION_HELP =
  'Suggestions appear as you type. Choose with the arrow keys, accept with Enter or Tab, close with Escape.'

const closed: Completion = { from: 0, to: 0, offers: [] }

export function CompletingText({ text, onChange, words, area }: CompletingTextProps) {
  const field = useRef<HTMLTextAreaElement>(null)
  const [completion, setCompletion] = useState(closed)
  const [chosen, setChosen] = useState(0)
  const [caret, setCaret] = useState<number>()
  // The caret can be set only after the new text is rendered.
  useLayoutEffect(() => {
    if (caret === undefined) return
    field.current?.setSelectionRange(caret, caret)
    setCaret(undefined)
  }, [caret])
  const open = (next: Completion) => {
    setCompletion(next)
    setChosen(0)
  }
  const take = (offer: PolicyWord) => {
    const taken = complete(text, completion, offer)
    onChange(taken.text)
    setCaret(taken.caret)
    open(closed)
    field.current?.focus()
  }
  const { offers } = completion
  const onKey = (event: KeyboardEvent) => {
    const offer = offers[chosen]
    if (!offer) return
    if (event.key === 'ArrowDown') setChosen((chosen + 1) % offers.length)
    else if (event.key === 'ArrowUp') setChosen((chosen + offers.length - 1) % offers.length)
    else if (event.key === 'Enter' || event.key === 'Tab') take(offer)
    else if (event.key === 'Escape') open(closed)
    else return
    event.preventDefault()
  }
  return (
    <>
      <textarea
        {...area}
        ref={field}
        class="editor"
        spellcheck={false}
        value={text}
        onInput={({ currentTarget }) => {
          onChange(currentTarget.value)
          open(completionAt(currentTarget.value, currentTarget.selectionStart, words))
        }}
        onKeyDown={onKey}
        onBlur={() => open(closed)}
      />
      <div role="status" class="unseen">
        {offers.length > 0 && `${offers[chosen]?.word}, ${chosen + 1} of ${offers.length}`}
      </div>
      {offers.length > 0 && (
        <ul class="offers" aria-hidden="true">
          {offers.map((offer, i) => (
            <li
              key={offer.word}
              class={i === chosen ? 'is-chosen' : ''}
              onMouseDown={(event) => {
                event.preventDefault()
                take(offer)
              }}
            >
              {offer.word} <span class="soft">{offer.what}</span>
            </li>
          ))}
        </ul>
      )}
    </>
  )
}
