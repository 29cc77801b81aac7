/** Copies a text to the clipboard, and says so. */
import { useState } from 'preact/hooks'

export function CopyButton({ text, what }: { readonly text: string; readonly what: string }) {
  const [said, setSaid] = useState('')
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      setSaid('Copied.')
    } catch {
      setSaid('The browser blocked copying. Select the text and copy it yourself.')
    }
  }
  return (
    <>
      <button type="button" onClick={() => void copy()}>
        Copy {what}
      </button>
      <span role="status" class="soft small">
        {said}
      </span>
    </>
  )
}
