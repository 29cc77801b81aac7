/** The menu at the side: places in groups, and below them what the page adds. */
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { MenuGroup } from './menu.ts'
import { isWithin, linkTo } from './page-location.ts'

const NARROW = '(max-width: 56rem)'

interface SideMenuProps {
  readonly groups: readonly MenuGroup[]
  /** The current path. */
  readonly path: string
  readonly children: ComponentChildren
}

/** On a phone it opens and closes. */
export function SideMenu({ groups, path, children }: SideMenuProps) {
  const box = useRef<HTMLDetailsElement>(null)
  useEffect(() => {
    const narrow = matchMedia(NARROW)
    const fit = () => {
      if (box.current) box.current.open = !narrow.matches
    }
    fit()
    narrow.addEventListener('change', fit)
    return () => narrow.removeEventListener('change', fit)
  }, [])
  // On a phone the menu covers the view.
  const onChosen = () => {
    if (box.current && matchMedia(NARROW).matches) box.current.open = false
  }
  return (
    <header class="side">
      <details ref={box}>
        <summary>
          <span class="brand">Postern</span>
        </summary>
        <nav aria-label="Views">
          {groups.map(({ title, entries }) => (
            <section key={title}>
              <h2>{title}</h2>
              <ul>
                {entries.map((entry) => (
                  <li key={entry.path}>
                    <a
                      href={linkTo(entry.path)}
                      aria-current={isWithin(path, entry.path) ? 'page' : undefined}
                      onClick={onChosen}
                    >
                      {entry.title}
                    </a>
                  </li>
                ))}
              </ul>
            </section>
          ))}
        </nav>
        <div class="side-end">{children}</div>
      </details>
    </header>
  )
}
