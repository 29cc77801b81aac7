/** A sentence of the API document, with its `code` as code. */

export function HelpText({ text }: { readonly text: string }) {
  return <>{text.split('`').map((part, i) => (i % 2 === 1 ? <code key={i}>{part}</code> : part))}</>
}
