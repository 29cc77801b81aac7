/** The menu of the dashboard, with the theme switch and the sign-out. */
import { usePage } from './page-state.ts'
import { groups } from './places.ts'
import { SideMenu } from './side-menu.tsx'
import { ThemeSwitch } from './theme-switch.tsx'

export function Menu() {
  const page = usePage()
  const isAdmin = page.signedIn.value?.role === 'admin'
  const seen = groups.map(({ title, places }) => ({
    title,
    places: places.filter((place) => isAdmin || !place.isForAdmins),
  }))
  return (
    <SideMenu groups={seen} path={page.location.value.path}>
      <ThemeSwitch />
      <a href="docs">API reference</a>
      <p class="soft small">Signed in as {isAdmin ? 'an admin' : 'a member'}</p>
      <button type="button" onClick={() => void page.signOut()}>
        Sign out
      </button>
    </SideMenu>
  )
}
