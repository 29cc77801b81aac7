/** The frame of a page: the menu at the side, and the view beside it. */
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { MenuGroup } from './menu.ts'
import { isWithin, linkTo } from './page-location.ts'
import { usePage } from './page-state.ts'
import { ThemeSwitch } from './theme-switch.tsx'
import { clockTime } from './time-text.ts'

const NARROW = '(max-width: 56rem)'

interface PageFrameProps extends SideMenuProps {
  /** Whose page it is. */
  readonly who: 'server' | 'agent'
  /** The view. */
  readonly children: ComponentChildren
}

export function PageFrame({ who, children, ...menu }: PageFrameProps) {
  return (
    <div class="frame">
      <button type="button" class="skip" onClick={() => document.getElementById('main')?.focus()}>
        Skip to content
      </button>
      <SideMenu {...menu} />
      <main id="main" tabIndex={-1}>
        <Away who={who} />
        {children}
      </main>
    </div>
  )
}

/** Says since when the server or agent has not responded. */
function Away({ who }: Pick<PageFrameProps, 'who'>) {
  const since = usePage().awaySince.value
  return (
    <div role="status">
      {since !== undefined && (
        <p class="notice is-bad">
          The {who} has not responded since {clockTime(since)}. The data shown is older than that. Retrying …
        </p>
      )}
    </div>
  )
}

interface SideMenuProps {
  readonly groups: readonly MenuGroup[]
  /** The current path. */
  readonly path: string
  /** Shown below the places and the theme. */
  readonly menuEnd: ComponentChildren
}

/** On a phone it opens and closes. */
function SideMenu({ groups, path, menuEnd }: SideMenuProps) {
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
        <div class="side-end">
          <ThemeSwitch />
          {menuEnd}
        </div>
      </details>
    </header>
  )
}
