/** The sign-in with an API key. */
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
      <p class="soft">Sign in with an API key. The server printed one when it first started.</p>
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
        This browser does not store the key. It gets an encrypted cookie that scripts cannot read and that expires after
        twelve hours. Lost the key? Run <code>postern admin create-key</code> on the server to create another. See also
        the <a href="docs">API reference</a>.
      </p>
    </main>
  )
}

/** Browsers send `Sec-Fetch-Site`, which the server requires, only over HTTPS and to their own machine. */
function NotSecure() {
  return (
    <p class="notice is-bad" role="alert">
      This page is open over plain HTTP from another machine. Others on the network could read the key, and the server
      cannot tell your requests from those of other sites. Open the page over HTTPS, with <code>--api-url</code> set to
      its address, or at <code>http://localhost</code> through <code>ssh -L 7400:localhost:7400</code>.
    </p>
  )
}
