/** What a login needs of a provider: the port that OpenID Connect, OAuth and SAML implement. */

import { hash } from 'node:crypto'
import type { Login, LoginUser, UsedAnswer } from '../../model/logins.ts'
import type { VisitorErrorCode } from '../../model/visitor-errors.ts'
import type { RequestContext, RequestVerdict } from '../phases.ts'

export interface LoginProvider {
  /** `oidc`, `google`, … */
  readonly name: string
  /** Its URL, such as the issuer, when that tells apart users of two providers; see `LoginOrigin`. */
  readonly url?: string
  readonly clientId: string
  /** A digest of the provider, the client and the scopes. A login with another identity does not count. */
  readonly identity: string
  /** A digest of the rules on who is let in. A login that was judged by other rules is checked again. Empty: no rules. */
  readonly rules: string
  /** How often the provider is asked about the user, in milliseconds; 0 for never again after the login. */
  readonly checkEveryMs: number
  /** Paths that the provider may send visitors back to, in the form of `Reserved`. New logins use the first. */
  readonly callbackPaths: readonly [string, ...string[]]
  /** Further pages that it answers. A page takes precedence over a callback of the same path and method. */
  readonly pages?: readonly ProviderPage[]
  /** The variables that this kind of login adds to those of all logins. */
  variables?(user: LoginUser): readonly (readonly [string, string])[]
  /** Begins a login. */
  begin(attempt: BeginAttempt): Promise<Beginning | LoginFault>
  /** Called when the visitor comes back in the browser in which the attempt began, without an error of the provider. */
  finish(callback: Callback): Promise<LoggedIn | LoginFault>
  /** Asks the provider again about the user of a login. */
  check?(login: Login): Promise<LoggedIn | LoginFault>
}

/** A page for the provider, such as one that accepts a POST. Its path holds the id of its route. */
export interface ProviderPage {
  /** With `{route}`, as `Reserved` writes paths. */
  readonly path: string
  readonly methods: readonly string[]
  answer(ctx: RequestContext, visit: LoginVisit): Promise<RequestVerdict>
}

/** What a page may do with logins. */
export interface LoginVisit {
  /** Logs a visitor in without an attempt that began here, and sends the browser to `to`, a path of this host. */
  readonly admit: (outcome: LoggedIn, to: string) => Promise<RequestVerdict>
  /** Ends the logins of a user at this route, in whichever browser; false when `asked` was used before. */
  readonly endUser: (userId: string, asked: UsedAnswer) => Promise<boolean>
  /** Tells the visitor and the log why nobody was logged in. */
  readonly refuse: (fault: LoginFault) => RequestVerdict
}

interface BeginAttempt {
  /** Opaque to the provider, which returns it to the callback. */
  readonly state: string
  readonly redirectUri: string
  /** Whether the user must give credentials again, even if the provider still knows the user. */
  readonly isForced: boolean
}

interface Beginning {
  readonly location: string
  /** What `finish` will need, such as a PKCE verifier. Kept sealed in a cookie: a few hundred bytes at most. */
  readonly kept: Readonly<Record<string, string>>
}

interface Callback {
  readonly redirectUri: string
  readonly state: string
  readonly params: URLSearchParams
  readonly kept: Readonly<Record<string, string>>
}

export interface LoggedIn {
  readonly user: LoginUser
  /**
   * What the provider stores with the login. The upstream gets `accessToken`, `refreshToken`, and every entry
   * whose name begins with `postern-auth-`.
   */
  readonly kept: Readonly<Record<string, string>>
  /** When the provider wants the login to end, in milliseconds since 1970; undefined when it sets no end. */
  readonly endsAt?: number | undefined
}

/** Why nobody was logged in. */
export interface LoginFault {
  /** `log_in_again` comes only from a check: the provider no longer vouches for the user. */
  readonly fault: VisitorErrorCode | 'log_in_again'
  /** For the log: it must hold no token, and nothing that a visitor sent. */
  readonly reason: string
}

/** A digest for `identity`, `rules` or a used answer: its length is bounded, and nobody learns from it what was sent. */
export function digestOf(parts: unknown): string {
  return hash('sha256', JSON.stringify(parts), 'base64url')
}

/** A text that a provider sent; empty when it is none, too long, or has control characters. */
export function boundText(value: unknown, maxLength: number): string {
  return typeof value === 'string' && value.length <= maxLength && !/\p{Cc}/u.test(value) ? value : ''
}

export function isFault(outcome: object): outcome is LoginFault {
  return 'fault' in outcome
}
