/** The dashboard: the sign-in, or the menu and the current view. */
import { useEffect, useState } from 'preact/hooks'
import { groups } from './menu.ts'
import { PageFrame } from './page-frame.tsx'
import { usePage } from './page-state.ts'
import { SignIn } from './sign-in.tsx'
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
  return <Dashboard />
}

/** The current view, beside a menu with the sign-out. */
function Dashboard() {
  const page = usePage()
  const isAdmin = page.signedIn.value?.role === 'admin'
  const seen = groups.map(({ title, entries }) => ({
    title,
    entries: entries.filter((entry) => isAdmin || !entry.isForAdmins),
  }))
  const menuEnd = (
    <>
      <a href="docs">API reference</a>
      <p class="soft small">Signed in as {isAdmin ? 'an admin' : 'a member'}</p>
      <button type="button" onClick={() => void page.signOut()}>
        Sign out
      </button>
    </>
  )
  return (
    <PageFrame who="server" groups={seen} path={page.location.value.path} menuEnd={menuEnd}>
      <View />
    </PageFrame>
  )
}
