/** Logins of visitors, and the port that stores them, so that another process may do it. */

/** A user who has logged in, as the provider describes them. */
export interface LoginUser {
  /** The provider's id of the user, which never changes. */
  readonly id: string
  readonly name: string
  readonly email: string
  /** The user name at the provider, if there is one besides the e-mail address. */
  readonly username: string
}

/** One login of a browser, at one route. */
export interface Login {
  /** A digest of the provider, the client and the scopes. A login with another identity does not count. */
  readonly identity: string
  readonly user: LoginUser
  /** What the provider stores with the login, such as tokens. Sealed in the store, and never logged. */
  readonly kept: Readonly<Record<string, string>>
  readonly createdAt: number
  /** When the provider was last asked about the user. */
  readonly checkedAt: number
  readonly lastSeenAt: number
}

/** Where a login is stored. D51: a browser has one secret on each host, and under it one login for each route. */
export interface LoginScope {
  /** What the cookie holds; only a digest of it is stored. */
  readonly secret: string
  readonly host: string
  readonly edgeId: string
  readonly routeId: string
}

/** Where a login came from, as the list of sessions shows it. */
export interface LoginOrigin {
  /** `oidc`, `google`, … */
  readonly provider: string
  /**
   * The URL of the provider, such as the issuer. The URL tells users of two providers of one kind apart; without a URL, the
   * identity of the login does.
   */
  readonly providerUrl?: string | undefined
  readonly ip: string
  readonly userAgent: string
  /** When it ends at the latest; undefined when nothing but inactivity ends it. */
  readonly expiresAt: number | undefined
}

/** The owner of logins, as the provider knows them. */
export interface LoginOwner extends Pick<LoginOrigin, 'provider' | 'providerUrl'> {
  readonly identity: string
  readonly userId: string
}

/** An answer or a request of a provider that may be used once. */
export interface UsedAnswer {
  /** A digest that names it. */
  readonly key: string
  /** Until when the digest must be remembered, in milliseconds since 1970: longer than the answer is valid anywhere. */
  readonly untilMs: number
}

export interface LoginSessions {
  /** Returns the login without a promise when this process has it in memory, as it nearly always does. */
  find(scope: LoginScope): Login | undefined | Promise<Login | undefined>
  /**
   * Stores a login, and replaces an older one; resolves when it would survive a restart. `before` is the secret that the
   * browser had on this host until now: its logins move to the new secret, and the old one becomes useless. Otherwise an
   * attacker could plant a secret in a browser and then share the visitor's login.
   */
  begin(scope: LoginScope, login: Login, origin: LoginOrigin, before?: string): Promise<void>
  /** Notes a request of the user. Cheap, and may be lost in a crash: it only postpones the inactivity timeout. */
  seen(scope: LoginScope, at: number): void
  /** Stores a login that was checked again. Does nothing when it has ended meanwhile. */
  renew(scope: LoginScope, login: Login): Promise<void>
  /** Ends all logins of a browser on this host. */
  end(scope: Pick<LoginScope, 'secret' | 'host'>): Promise<void>
  /**
   * Ends the logins of a user at one route, in all browsers, because the provider asked for it. Returns false and ends
   * none when `asked` was used before. It counts as used only if the logins have ended.
   */
  endUser(owner: LoginOwner, routeId: string, asked: UsedAnswer): Promise<boolean>
  /**
   * Marks an answer as used; returns whether this was the first use. Resolves when the mark would survive a restart. When
   * this rejects, the answer may count as used or not, and nobody may be let in by the answer.
   */
  useAnswer(answer: UsedAnswer): Promise<boolean>
}
