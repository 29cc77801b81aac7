/** The menu of the page, the switch between light and dark, and the way out. */
import { useEffect, useRef } from 'preact/hooks'
import { isWithin, linkTo } from './page-location.ts'
import { type PageState, type Theme, usePage } from './page-state.ts'
import { groups, type MenuPlace } from './places.ts'

const NARROW = '(max-width: 56rem)'

export function Menu() {
  const page = usePage()
  const { path } = page.location.value
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
  // On a phone the menu covers what it leads to.
  const onChosen = () => {
    if (box.current && matchMedia(NARROW).matches) box.current.open = false
  }
  const isAdmin = page.signedIn.value?.role === 'admin'
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
                {places
                  .filter(({ isForAdmins }) => isAdmin || !isForAdmins)
                  .map((place) => (
                    <li key={place.path}>
                      <a
                        href={linkTo(place.path)}
                        aria-current={isCurrent(place, path) ? 'page' : undefined}
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
        <div class="side-end">
          <ThemeSwitch page={page} />
          <a href="docs">API reference</a>
          <p class="soft small">Signed in as {isAdmin ? 'an admin' : 'a member'}</p>
          <button type="button" onClick={() => void page.signOut()}>
            Sign out
          </button>
        </div>
      </details>
    </header>
  )
}

function isCurrent({ path: place }: MenuPlace, path: string): boolean {
  return isWithin(path, place)
}

const themes: readonly [theme: Theme, name: string][] = [
  ['', 'As the system'],
  ['light', 'Light'],
  ['dark', 'Dark'],
]

function ThemeSwitch({ page }: { readonly page: PageState }) {
  return (
    <label class="theme">
      <span>Colours</span>
      <select
        value={page.theme.value}
        onChange={({ currentTarget: { value } }) => {
          page.theme.value = value === 'light' || value === 'dark' ? value : ''
        }}
      >
        {themes.map(([theme, name]) => (
          <option key={theme} value={theme}>
            {name}
          </option>
        ))}
      </select>
    </label>
  )
}
