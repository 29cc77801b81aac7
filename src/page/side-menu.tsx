/** The menu at the side: places in groups, and below them what the page adds. On a phone it opens and closes. */
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { isWithin, linkTo } from './page-location.ts'
import type { MenuGroup } from './places.ts'

const NARROW = '(max-width: 56rem)'

interface SideMenuProps {
  readonly groups: readonly MenuGroup[]
  /** The current path. */
  readonly path: string
  readonly children: ComponentChildren
}

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
          {groups.map(({ title, places }) => (
            <section key={title}>
              <h2>{title}</h2>
              <ul>
                {places.map((place) => (
                  <li key={place.path}>
                    <a
                      href={linkTo(place.path)}
                      aria-current={isWithin(path, place.path) ? 'page' : undefined}
                      onClick={onChosen}
                    >
                      {place.title}
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
