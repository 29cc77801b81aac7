/** The dashboard: the sign-in, or the menu and the current view. */
import { useEffect, useState } from 'preact/hooks'
import { Away } from './away.tsx'
import { groups } from './menu.ts'
import { usePage } from './page-state.ts'
import { SideMenu } from './side-menu.tsx'
import { SignIn } from './sign-in.tsx'
import { ThemeSwitch } from './theme-switch.tsx'
import { View } from './view.tsx'

/** How often a server that does not respond is tried again, in milliseconds. */
const RETRY_MS = 2000

export function App() {
  const page = usePage()
  const [fault, setFault] = useState(false)
  const signedIn = page.signedIn.value
  useEffect(() => {
    if (signedIn !== undefined) return
    let timer: ReturnType<typeof setTimeout> | undefined
    const ask = async () => {
      const failed = await page.readSignedIn()
      setFault(failed !== undefined)
      if (failed) timer = setTimeout(() => void ask(), RETRY_MS)
    }
    void ask()
    return () => clearTimeout(timer)
  }, [page, signedIn])
  if (signedIn === undefined) {
    return (
      <main class="sign-in" id="main">
        <h1>Postern</h1>
        <p role="status">{fault ? 'The server is not responding. Retrying …' : 'Connecting to the server …'}</p>
      </main>
    )
  }
  if (signedIn === null) return <SignIn />
  return (
    <div class="frame">
      <button type="button" class="skip" onClick={() => document.getElementById('main')?.focus()}>
        Skip to content
      </button>
      <Menu />
      <main id="main" tabIndex={-1}>
        <Away who="server" />
        <View />
      </main>
    </div>
  )
}

/** The menu of the dashboard, with the theme switch and the sign-out. */
function Menu() {
  const page = usePage()
  const isAdmin = page.signedIn.value?.role === 'admin'
  const seen = groups.map(({ title, entries }) => ({
    title,
    entries: entries.filter((entry) => isAdmin || !entry.isForAdmins),
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
