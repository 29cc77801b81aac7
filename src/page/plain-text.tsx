/** Untrusted text: shown as text, isolated from the direction of the text around it, and cut when long. */
import { useState } from 'preact/hooks'
import { cutText } from './visible-text.ts'

/** How many more characters a click shows. */
const MORE = 100_000

interface PlainTextProps {
  readonly text: string
  /** How many characters are shown at first. */
  readonly most?: number
}

export function PlainText({ text, most = 300 }: PlainTextProps) {
  const [shown, setShown] = useState(most)
  const cut = cutText(text, shown)
  return (
    <>
      <bdi class="plain">{cut.text}</bdi>
      {cut.left > 0 && (
        <button type="button" class="quiet" onClick={() => setShown(shown + MORE)}>
          … {cut.left.toLocaleString('en')} more characters: show more
        </button>
      )}
    </>
  )
}
