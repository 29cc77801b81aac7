/** What all views share: who is signed in, whether the server responds, the current location, and the API caller. */
import { type Signal, signal } from '@preact/signals'
import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import { ApiCaller, type CallFault } from './api-caller.ts'
import { type ApiOutline, outlineOf } from './api-outline.ts'
import { type PageLocation, readHash } from './page-location.ts'

/** Who is signed in. */
interface SignedIn {
  readonly user_id: string
  readonly role: 'admin' | 'member'
  readonly key_id: string
  readonly expires_at: string
}

interface SessionAnswer {
  readonly session: SignedIn | null
  /** In the answer to a sign-in alone. */
  readonly secret?: string
}

/** `''` follows the system. */
export type Theme = '' | 'light' | 'dark'

const THEME = 'postern-theme'

/** The secret of the sign-in: only pages of this origin can read it, unlike its cookie, which goes to every port. */
const SECRET = 'postern-page'

export class PageState {
  readonly api: ApiCaller
  readonly location: Signal<PageLocation>
  /** Undefined until known, null when nobody is signed in. */
  readonly signedIn = signal<SignedIn | null | undefined>(undefined)
  /** Since when the server has not responded, in milliseconds since 1970; undefined while it does. */
  readonly awaySince = signal<number | undefined>(undefined)
  readonly theme: Signal<Theme>
  readonly #storage: Storage
  #hasMoved = false
  #outline: Promise<ApiOutline | CallFault> | undefined

  /** The API of an agent is below its page, at `api/`. */
  constructor(browser: Window & typeof globalThis, { who = 'server' }: { readonly who?: 'server' | 'agent' } = {}) {
    const { document, localStorage } = browser
    this.#storage = localStorage
    this.location = signal(readHash(browser.location.hash))
    browser.addEventListener('hashchange', () => {
      this.#hasMoved = true
      this.location.value = readHash(browser.location.hash)
    })
    this.api = new ApiCaller({
      fetch: (...call) => browser.fetch(...call),
      who,
      base: new URL(who === 'agent' ? 'api/' : '', document.baseURI.replace(/[?#].*$/, '')).href,
      onAnswer: (isHere) => {
        if (isHere) this.awaySince.value = undefined
        else this.awaySince.value ??= Date.now()
      },
      secret: () => localStorage.getItem(SECRET),
      onSignedOut: () => {
        if (this.signedIn.value) this.signedIn.value = null
      },
    })
    const kept = localStorage.getItem(THEME)
    this.theme = signal(kept === 'light' || kept === 'dark' ? kept : '')
    this.theme.subscribe((theme) => {
      document.documentElement.dataset.theme = theme
      localStorage.setItem(THEME, theme)
    })
  }

  /** Whether the user has gone to another view since the page was loaded. */
  get hasMoved(): boolean {
    return this.#hasMoved
  }

  /** Asks who is signed in. */
  readSignedIn(): Promise<CallFault | undefined> {
    return this.#callSession('GET')
  }

  signIn(apiKey: string): Promise<CallFault | undefined> {
    return this.#callSession('POST', { api_key: apiKey })
  }

  signOut(): Promise<CallFault | undefined> {
    return this.#callSession('DELETE')
  }

  /** The outline of the API document, read once; after a failure, the next caller reads it again. */
  async outline(): Promise<ApiOutline | CallFault> {
    this.#outline ??= this.#readOutline()
    const outline = await this.#outline
    if ('kind' in outline) this.#outline = undefined
    return outline
  }

  /** Every answer says who is signed in from now on; the one to a sign-out is empty. */
  async #callSession(method: 'GET' | 'POST' | 'DELETE', body?: unknown): Promise<CallFault | undefined> {
    const outcome = await this.api.call<SessionAnswer | undefined>(method, '/page/session', body)
    if (!outcome.ok) return outcome.fault
    const { session = null, secret } = outcome.value ?? {}
    if (secret !== undefined) this.#storage.setItem(SECRET, secret)
    else if (method === 'DELETE') this.#storage.removeItem(SECRET)
    this.signedIn.value = session
    return undefined
  }

  async #readOutline(): Promise<ApiOutline | CallFault> {
    const outcome = await this.api.get('/openapi.json')
    return outcome.ok ? outlineOf(outcome.value) : outcome.fault
  }
}

export const PageContext = createContext<PageState | undefined>(undefined)

export function usePage(): PageState {
  const page = useContext(PageContext)
  if (!page) throw new Error('usePage was called outside of PageContext')
  return page
}
