/** The head of a view: title, a note such as freshness, and actions. */
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { usePage } from './page-state.ts'

interface ViewHeadProps {
  readonly title: string
  /** Shown beside the title. */
  readonly note?: ComponentChildren
  readonly children?: ComponentChildren
}

export function ViewHead({ title, note, children }: ViewHeadProps) {
  const page = usePage()
  const heading = useRef<HTMLHeadingElement>(null)
  // After following a link, users of keyboards and screen readers start at the title.
  useEffect(() => {
    document.title = `${title} · Postern`
    const { activeElement } = document
    if (!page.hasMoved) return
    if (activeElement === document.body || activeElement?.closest('nav, .view-head')) heading.current?.focus()
  }, [page, title])
  return (
    <div class="view-head">
      <h1 ref={heading} tabIndex={-1}>
        {title}
      </h1>
      {note}
      <div class="actions">{children}</div>
    </div>
  )
}
