/** What logins leave behind on the server: the port that keeps them, so that it may be another process that does. */

/** Who has logged in, as its provider told us. */
export interface LoginUser {
  /** What it is known by at its provider, for good. */
  readonly id: string
  readonly name: string
  readonly email: string
  /** The provider's name for it, where there is one besides the address. */
  readonly username: string
}

/** One login of a browser, at one route. */
export interface Login {
  /** What it was a login to: a digest of the provider, the client and the scopes. Of another one, it is none. */
  readonly identity: string
  readonly user: LoginUser
  /** What the provider's side of the module needs again, such as a token; sealed where it is stored, and never logged. */
  readonly kept: Readonly<Record<string, string>>
  readonly createdAt: number
  /** When the provider was last asked about the user. */
  readonly checkedAt: number
  readonly lastSeenAt: number
}

/** Where a login is found: D51, a browser has one secret on each host, and under it one login for each route. */
export interface LoginPlace {
  /** What the cookie holds; only a digest of it is stored. */
  readonly secret: string
  readonly host: string
  readonly edgeId: string
  readonly routeId: string
}

/** From where somebody logs in, for whoever looks at the list of sessions. */
export interface LoginOrigin {
  /** `oidc`, `google`, … */
  readonly provider: string
  /**
   * Where the provider is, such as the issuer. It tells users of two providers of one kind apart; without it, users are told
   * apart by the identity they logged in to.
   */
  readonly providerUrl?: string | undefined
  readonly ip: string
  readonly userAgent: string
  /** When it ends at the latest; undefined when nothing but inactivity ends it. */
  readonly expiresAt: number | undefined
}

/** Whose logins are meant: of a user as its provider knows it. */
export interface LoginOwner extends Pick<LoginOrigin, 'provider' | 'providerUrl'> {
  readonly identity: string
  readonly userId: string
}

export interface LoginSessions {
  /** At once when it is known here, as it nearly always is. */
  find(place: LoginPlace): Login | undefined | Promise<Login | undefined>
  /**
   * Keeps a login, in the place of an older one; resolves when no restart loses it. `before` is the secret that the
   * browser had on this host until now: what is kept under it moves along, and it opens nothing any more. Who planted a
   * secret in a browser must not be logged in with it.
   */
  begin(place: LoginPlace, login: Login, origin: LoginOrigin, before?: string): Promise<void>
  /** The user was here. Cheap, and may be lost by a crash: it only moves the end of inactivity. */
  seen(place: LoginPlace, at: number): void
  /** The provider was asked again. Does nothing when the login has ended meanwhile. */
  renew(place: LoginPlace, login: Login): Promise<void>
  /** Ends all that a browser has on this host. */
  end(place: Pick<LoginPlace, 'secret' | 'host'>): Promise<void>
  /** Ends the logins of a user at one route, in whichever browser. */
  endUser(owner: LoginOwner, routeId: string): Promise<void>
}
