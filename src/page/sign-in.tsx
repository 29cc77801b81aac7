/** Where one signs in, with an API key. */
import { useState } from 'preact/hooks'
import type { CallFault } from './api-caller.ts'
import { usePage } from './page-state.ts'

export function SignIn() {
  const page = usePage()
  const [fault, setFault] = useState<CallFault>()
  const [isBusy, setBusy] = useState(false)
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    // The form is the one of this component, and its field has this name.
    const form = event.currentTarget as HTMLFormElement
    const key = new FormData(form).get('api_key')
    setBusy(true)
    setFault(await page.signIn(typeof key === 'string' ? key.trim() : ''))
    setBusy(false)
  }
  return (
    <main class="sign-in card" id="main">
      <h1>Postern</h1>
      <p class="soft">Sign in with an API key of this server. Its first start showed one.</p>
      {!window.isSecureContext && <NotSecure />}
      <form onSubmit={(event) => void submit(event)}>
        <label for="api-key">API key</label>
        <input
          id="api-key"
          name="api_key"
          type="password"
          autoComplete="current-password"
          spellcheck={false}
          required
          aria-invalid={fault ? 'true' : undefined}
          aria-describedby={fault ? 'sign-in-fault' : undefined}
        />
        {fault && (
          <p id="sign-in-fault" class="field-fault" role="alert">
            {fault.text}
          </p>
        )}
        <button type="submit" class="primary" disabled={isBusy}>
          Sign in
        </button>
      </form>
      <p class="soft small">
        The key stays with the server: this browser gets a sealed cookie that no script can read, for twelve hours. Lost
        the key? <code>postern admin create-key</code> makes another, on the machine of the server. Programs find the
        API at <a href="docs">docs</a>.
      </p>
    </main>
  )
}

/** Browsers tell servers where a request comes from over https and on their own machine alone. */
function NotSecure() {
  return (
    <p class="notice is-bad" role="alert">
      This page was opened over plain HTTP from another machine, where the key could be read by others and the server
      cannot tell your requests from those of other sites. Open it over https, with <code>--api-url</code> set to its
      address, or at <code>http://localhost</code> through <code>ssh -L 7400:localhost:7400</code>.
    </p>
  )
}
