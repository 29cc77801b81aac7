/** Logins of visitors, as the data plane has them read and written where they are stored. */
import type { Login, LoginOrigin, LoginOwner, LoginScope, UsedAnswer } from '../../model/logins.ts'

/** A login unused for this long ends, in milliseconds, whatever its route allows: 90 days. */
export const MAX_IDLE_MS = 90 * 24 * 3600 * 1000

/** How long a visitor waits for the database, in milliseconds. */
export const LOOKUP_MS = 3000

/** A login as it is stored. */
export interface StoredLogin {
  readonly id: string
  readonly userId: string
  readonly login: Login
  /** When it ends at the latest, in milliseconds since 1970. */
  readonly expiresAt: number | null
}

/** What ended or changed, and may no longer be taken from memory. */
export interface LoginEndings {
  /** Changes were missed: anything may have ended. */
  readonly isAll: boolean
  readonly ids: readonly string[]
  readonly userIds: readonly string[]
}

/** When the user of a login was last here. */
export interface SeenLogin {
  readonly id: string
  readonly userId: string
  /** In milliseconds since 1970. */
  readonly at: number
}

export type LoginRows = {
  loginAt(at: { readonly browser: string; readonly routeId: string }): Promise<StoredLogin | undefined>
  /** Gives the ids of logins that this call ended or moved; resolves when the new login would survive a restart. */
  beginLogin(begun: {
    readonly place: LoginScope
    readonly login: Login
    readonly origin: LoginOrigin
    readonly before?: string | undefined
  }): Promise<readonly string[]>
  /** Gives the id of the login, unless another has taken its place. */
  renewLogin(renewed: { readonly place: LoginScope; readonly login: Login }): Promise<string | undefined>
  endBrowser(browser: string): Promise<void>
  /** Gives the ids of the logins that ended; undefined, and none ends, when `asked` was used before. */
  endLoginsOf(user: {
    readonly owner: LoginOwner
    readonly routeId: string
    readonly asked: UsedAnswer
  }): Promise<readonly string[] | undefined>
  /** Gives whether this was the first time; resolves when that would survive a restart. */
  useAnswer(answer: UsedAnswer): Promise<boolean>
  seenLogins(seen: readonly SeenLogin[]): Promise<void>
}
