/** What a login needs of a provider: the port that OpenID Connect, OAuth and SAML each fill in. */
import type { VisitorErrorCode } from '../../model/visitor-errors.ts'
import type { RequestContext, RequestVerdict } from '../phases.ts'
import type { Login, LoginUser } from './sessions.ts'

export interface LoginProvider {
  /** `oidc`, `google`, … */
  readonly name: string
  /** Where it is, such as the issuer, when that tells its users apart from those of another; see `LoginOrigin`. */
  readonly url?: string
  readonly clientId: string
  /** A digest of the provider, the client and the scopes: a login to another one counts as none. */
  readonly identity: string
  /** A digest of who is let in; a login that was judged by other rules is checked again. Empty: everybody is. */
  readonly rules: string
  /** How long a check of the user holds, in milliseconds; 0 for as long as the login. */
  readonly checkEveryMs: number
  /** Where the provider sends visitors back to, the one that it is told first; it takes all. As `Reserved` writes paths. */
  readonly callbackPaths: readonly [string, ...string[]]
  /** What else it answers; a page goes before a callback of the same path and method. */
  readonly pages?: readonly ProviderPage[]
  /** Variables of this kind of login, beside those of all. */
  variables?(user: LoginUser): readonly (readonly [string, string])[]
  /** Begins a login. */
  begin(attempt: BeginAttempt): Promise<Beginning | LoginFault>
  /** The visitor came back, in the browser that the attempt began in, and with no error of the provider. */
  finish(callback: Callback): Promise<LoggedIn | LoginFault>
  /** Asks the provider again about the user of a login. */
  check?(login: Login): Promise<LoggedIn | LoginFault>
}

/** An address of the provider's side, such as one that takes a POST; it is of one route, which its path names. */
export interface ProviderPage {
  /** With `{route}`, as `Reserved` writes paths. */
  readonly path: string
  readonly methods: readonly string[]
  answer(ctx: RequestContext, visit: LoginVisit): Promise<RequestVerdict>
}

/** What a page may do about logins. */
export interface LoginVisit {
  /** Logs somebody in without an attempt that began here, and sends the browser to `to`, a path of this host. */
  readonly admit: (outcome: LoggedIn, to: string) => Promise<RequestVerdict>
  /** Ends the logins of a user at this route, in whichever browser. */
  readonly endUser: (userId: string) => Promise<void>
  /** Says to visitor and log why nobody is logged in. */
  readonly refuse: (fault: LoginFault) => RequestVerdict
}

export interface BeginAttempt {
  /** Opaque to the provider, which gives it back to the callback. */
  readonly state: string
  readonly redirectUri: string
  /** Whether the user must prove who it is, also when the provider still knows. */
  readonly isForced: boolean
}

export interface Beginning {
  readonly location: string
  /** What `finish` needs again, such as a PKCE verifier; sealed, in a cookie of the browser. Some hundred bytes at most. */
  readonly kept: Readonly<Record<string, string>>
}

export interface Callback {
  readonly redirectUri: string
  readonly state: string
  readonly params: URLSearchParams
  readonly kept: Readonly<Record<string, string>>
}

export interface LoggedIn {
  readonly user: LoginUser
  /**
   * Of the user and the provider's side of the login. The upstream is told `accessToken`, `refreshToken`, and whatever has
   * the name of a header that begins with `postern-auth-`.
   */
  readonly kept: Readonly<Record<string, string>>
  /** When the login ends at the latest by the word of the provider, in milliseconds since 1970; undefined when it sets no end. */
  readonly endsAt?: number | undefined
}

/** Why nobody is logged in. */
export interface LoginFault {
  /** `log_in_again`: by a check alone; the provider does not speak for the user any more. */
  readonly fault: VisitorErrorCode | 'log_in_again'
  /** For the log, so that it holds no token and nothing that a visitor wrote. */
  readonly reason: string
}

export function isFault(outcome: object): outcome is LoginFault {
  return 'fault' in outcome
}
