/** Logins of visitors as a data plane knows them: cached in memory, and read and written where they are stored. */

import type { Clock } from '../../lib/clock.ts'
import { inTime } from '../../lib/in-time.ts'
import { RecentlyEnded } from '../../lib/limits/recently-ended.ts'
import { MinuteLog } from '../../lib/log/minute-log.ts'
import { LOOKUP_MS, type LoginEndings, type LoginRows, MAX_IDLE_MS } from '../../link/planes/login-store.ts'
import { Refusal } from '../../model/errors.ts'
import { LinkFault } from '../../model/link-fault.ts'
import type { Login, LoginOrigin, LoginOwner, LoginScope, LoginSessions, UsedAnswer } from '../../model/logins.ts'
import type { PlaneContext } from '../../model/plane-context.ts'
import { shared } from '../../model/shared.ts'
import { browserOf } from '../../modules/login/browser-digest.ts'
import { type CachedLogin, keyOf, LoginCache } from './login-cache.ts'
import { SeenLogins } from './seen-logins.ts'

/**
 * How long a visitor waits for an answer, in milliseconds. It is longer than the database may take, so it matters only when the
 * process that asks the database is silent too.
 */
const ANSWER_MS = LOOKUP_MS + 1000

/** Concurrent lookups. */
const MAX_LOOKUPS = shared.loginLookUps.most

/** Those of them for secrets without our checksum: a flood of made-up cookies must not keep out visitors who have logged in. */
const MAX_UNPROVEN = MAX_LOOKUPS / 4

/**
 * How long an unused cached login counts as current, in milliseconds: its user may be active at another data plane, which does
 * not report that.
 */
const FRESH_MS = 60_000

/** Memory for logins, in bytes: some 40,000 of the usual size. */
const CACHE_BYTES = 64 * 1024 * 1024

export interface CachedLoginsOptions extends Pick<PlaneContext, 'now' | 'log'> {
  readonly rows: LoginRows
  /** Whether the checksum of a secret proves that it was not made up. */
  readonly isOurs: (scope: LoginScope) => boolean
  /** Smaller ones are for tests. */
  readonly cacheBytes?: number
  readonly answerMs?: number
}

/** The key of a place. */
interface Handle {
  readonly browser: string
  readonly key: string
}

/**
 * A login is kept in memory from its first use until it ends here, is reported to have ended elsewhere, or has to make room. So
 * visitors who are known here go on while the database is silent, or the process that asks the database. Other visitors wait for
 * an answer, for a bounded time.
 */
export class CachedLogins implements LoginSessions {
  readonly #rows: LoginRows
  readonly #now: Clock
  readonly #answerMs: number
  readonly #cache: LoginCache
  readonly #handles = new WeakMap<LoginScope, Handle>()
  readonly #seen: SeenLogins
  readonly #isOurs: (scope: LoginScope) => boolean
  readonly #lookups = new Map<string, Promise<CachedLogin | undefined>>()
  #unproven = 0
  /** By ids of logins and users, and by browsers. */
  readonly #endings = new RecentlyEnded()
  readonly #troubles: MinuteLog<{ err: unknown }>

  constructor({ rows, isOurs, now, log, cacheBytes = CACHE_BYTES, answerMs = ANSWER_MS }: CachedLoginsOptions) {
    this.#rows = rows
    this.#isOurs = isOurs
    this.#now = now
    this.#answerMs = answerMs
    this.#cache = new LoginCache(cacheBytes)
    this.#troubles = new MinuteLog((fields, count) =>
      log.warn({ ...fields, count }, 'cannot read visitor logins; known visitors go on'),
    )
    this.#seen = new SeenLogins({ rows, log })
  }

  find(scope: LoginScope): Login | undefined | Promise<Login | undefined> {
    const { browser, key } = this.#handleOf(scope)
    const cached = this.#cache.at(key)
    if (!cached) return this.#lookUpNew(scope, browser).then((found) => this.#current(found))
    const isFresh = this.#now() - Math.max(cached.readAt, cached.login.lastSeenAt) < FRESH_MS
    return isFresh ? this.#current(cached) : this.#refreshed(cached)
  }

  async begin(scope: LoginScope, login: Login, origin: LoginOrigin, before?: string): Promise<void> {
    const browser = browserOf(scope)
    const browserBefore = before === undefined ? browser : browserOf({ secret: before, host: scope.host })
    const gone = await awaitAnswer(this.#rows.beginLogin({ place: scope, login, origin, before }))
    // The old secret is no longer valid.
    if (browserBefore !== browser) this.#forgetBrowser(browserBefore)
    // The new login is cached when it is next read: it may end between the commit and this line.
    this.#forget(gone)
    // A cached login at this place has ended elsewhere, which is not known here yet.
    const known = this.#cache.get(browser, scope.routeId)
    if (known) this.#cache.drop(known.id)
  }

  seen(scope: LoginScope, at: number): void {
    const cached = this.#cache.at(this.#handleOf(scope).key)
    if (cached) this.#seen.note(cached, at)
  }

  async renew(scope: LoginScope, login: Login): Promise<void> {
    const id = await awaitAnswer(this.#rows.renewLogin({ place: scope, login }))
    if (id !== undefined) this.#forget([id])
  }

  async end(scope: Pick<LoginScope, 'secret' | 'host'>): Promise<void> {
    const browser = browserOf(scope)
    this.#forgetBrowser(browser)
    await awaitAnswer(this.#rows.endBrowser(browser))
    // Entries that were read again while being removed.
    this.#forgetBrowser(browser)
  }

  async endUser(owner: LoginOwner, routeId: string, asked: UsedAnswer): Promise<boolean> {
    const gone = await awaitAnswer(this.#rows.endLoginsOf({ owner, routeId, asked }))
    if (gone) this.#forget(gone)
    return gone !== undefined
  }

  useAnswer(answer: UsedAnswer): Promise<boolean> {
    return awaitAnswer(this.#rows.useAnswer(answer))
  }

  /** Logins ended elsewhere, or may have. */
  ended({ isAll, ids, userIds }: LoginEndings): void {
    if (isAll) {
      this.#cache.clear()
      this.#endings.noteAll()
    }
    this.#forget(ids)
    if (userIds.length === 0) return
    this.#cache.dropUsers(new Set(userIds))
    for (const id of userIds) this.#endings.note(id)
  }

  /** Writes what is still waiting. */
  async close(): Promise<void> {
    await this.#seen.close()
    this.#troubles.close()
  }

  /** Repeated calls for the same place skip the digest. */
  #handleOf(scope: LoginScope): Handle {
    const known = this.#handles.get(scope)
    if (known) return known
    const browser = browserOf(scope)
    const handle = { browser, key: keyOf(browser, scope.routeId) }
    this.#handles.set(scope, handle)
    return handle
  }

  /** The login, unless it has expired. */
  #current(cached: CachedLogin | undefined): Login | undefined {
    if (!cached) return undefined
    const now = this.#now()
    const isOver = cached.expiresAt !== null && cached.expiresAt <= now
    return isOver || cached.login.lastSeenAt <= now - MAX_IDLE_MS ? undefined : cached.login
  }

  /** Reads a cached login again; while there is no answer, the cached one counts. */
  async #refreshed(cached: CachedLogin): Promise<Login | undefined> {
    try {
      return this.#current(await this.#lookUp(cached.browser, cached.routeId))
    } catch (err) {
      this.#troubles.note({ err })
      // Counts as current for a while, so that not every request waits.
      cached.readAt = this.#now()
      // The login may have ended here meanwhile.
      return this.#cache.get(cached.browser, cached.routeId) === cached ? this.#current(cached) : undefined
    }
  }

  /** Looks up a secret that is not known here: those without our checksum have a share of the lookups. */
  async #lookUpNew(scope: LoginScope, browser: string): Promise<CachedLogin | undefined> {
    if (this.#isOurs(scope)) return this.#lookUp(browser, scope.routeId)
    if (this.#unproven >= MAX_UNPROVEN) throw noAnswer()
    this.#unproven++
    try {
      return await this.#lookUp(browser, scope.routeId)
    } finally {
      this.#unproven--
    }
  }

  /** Requests of one browser for one route share one lookup. */
  #lookUp(browser: string, routeId: string): Promise<CachedLogin | undefined> {
    const key = keyOf(browser, routeId)
    const underWay = this.#lookups.get(key)
    if (underWay) return underWay
    if (this.#lookups.size >= MAX_LOOKUPS) return Promise.reject(noAnswer())
    const found = this.#read(browser, routeId).finally(() => this.#lookups.delete(key))
    this.#lookups.set(key, found)
    return found
  }

  async #read(browser: string, routeId: string): Promise<CachedLogin | undefined> {
    const { moment } = this.#endings
    const row = await inTime(awaitAnswer(this.#rows.loginAt({ browser, routeId })), this.#answerMs, noAnswer)
    const before = this.#cache.get(browser, routeId)
    if (before && before.id !== row?.id) this.#cache.drop(before.id)
    if (!row) return undefined
    const { id, userId, login, expiresAt } = row
    const lastSeenAt = Math.max(login.lastSeenAt, this.#seen.pending(id))
    const cached: CachedLogin = {
      id,
      userId,
      browser,
      routeId,
      login: { ...login, lastSeenAt },
      expiresAt,
      readAt: this.#now(),
      notedAt: lastSeenAt,
    }
    // A login that ended while it was read serves this request, and no later one.
    if (!this.#endings.hasEnded([browser, id, userId], moment)) this.#cache.set(cached)
    return cached
  }

  #forget(ids: readonly string[]): void {
    for (const id of ids) {
      this.#cache.drop(id)
      this.#endings.note(id)
    }
  }

  #forgetBrowser(browser: string): void {
    this.#cache.dropBrowser(browser)
    this.#endings.note(browser)
  }
}

/** Visitors get the same answer whether the database is down or the process that asks it. */
async function awaitAnswer<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer
  } catch (error) {
    throw error instanceof LinkFault ? noAnswer(error) : error
  }
}

function noAnswer(cause?: Error): Refusal {
  return new Refusal('STORE_UNAVAILABLE', undefined, { headers: { 'retry-after': '1' }, cause })
}
