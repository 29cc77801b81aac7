/**
 * Logins of visitors, kept in the store and found in memory.
 *
 * A login is held in memory once it was asked for, until it ends here, another node says that it changed, or there is no room.
 * So visitors who are here go on while the database is silent; whoever is not known here waits for it, for a bounded time.
 */
import type { Clock } from '../lib/clock.ts'
import type { IdSource } from '../lib/ids.ts'
import type { Logger } from '../lib/log/log.ts'
import { MinuteLog } from '../lib/log/minute-log.ts'
import type { Sealer } from '../lib/secrets/seal.ts'
import { Refusal } from '../model/errors.ts'
import type { Login, LoginOrigin, LoginOwner, LoginPlace, LoginSessions } from '../modules/login/sessions.ts'
import { applicationSessions } from '../resources/application-sessions.ts'
import { applicationUsers } from '../resources/application-users.ts'
import type { Change } from '../store/feed.ts'
import type { Store } from '../store/store.ts'
import { Endings } from './endings.ts'
import type { Followed } from './follower.ts'
import { type CachedLogin, keyOf, LoginCache } from './login-cache.ts'
import { browserOf, changingColumns, loginOf, sessionRow, userKey, userRow } from './login-rows.ts'
import { holdKey } from './sealing.ts'
import { SeenLogins } from './seen-logins.ts'

/** How long a visitor waits for the database, in milliseconds. */
const LOOKUP_MS = 3000

/** Concurrent lookups. A flood of made-up cookies must not keep the database from everybody else. */
const MAX_LOOKUPS = 200

/**
 * How long an unused cached login counts as current, in milliseconds: its user may be active on another node, which the
 * feed does not report.
 */
const FRESH_MS = 60_000

/** Memory for logins, in bytes: some 40,000 of the usual size. */
const CACHE_BYTES = 64 * 1024 * 1024

/** Most logins of one user: three browsers at more than 150 routes. More than that is a script. */
const MAX_OF_USER = 500

/** A login unused for this long ends, in milliseconds, whatever its route allows: 90 days. */
export const MAX_IDLE_MS = 90 * 24 * 3600 * 1000

/** There is one login too many after each new one, and more only when the limit was lowered. */
const REMOVED_AT_ONCE = 100

export interface StoredSessionsOptions {
  readonly store: Store
  readonly sealer: Sealer
  readonly ids: IdSource
  readonly now: Clock
  readonly log: Logger
  /** Smaller ones are for tests. */
  readonly maxOfUser?: number
  readonly cacheBytes?: number
  readonly lookupMs?: number
}

/** The key of a place. */
interface Handle {
  readonly browser: string
  readonly key: string
}

export class StoredSessions implements LoginSessions, Followed {
  readonly #options: StoredSessionsOptions
  readonly #store: Store
  readonly #now: Clock
  readonly #cache: LoginCache
  readonly #handles = new WeakMap<LoginPlace, Handle>()
  readonly #seen: SeenLogins
  readonly #lookups = new Map<string, Promise<CachedLogin | undefined>>()
  /** By ids of logins and users, and by browsers. */
  readonly #endings = new Endings()
  readonly #troubles: MinuteLog<{ err: unknown }>

  constructor(options: StoredSessionsOptions) {
    this.#options = options
    this.#store = options.store
    this.#now = options.now
    this.#cache = new LoginCache(options.cacheBytes ?? CACHE_BYTES)
    this.#troubles = new MinuteLog((fields, count) => options.log.warn({ ...fields, count }, 'logins cannot be read'))
    this.#seen = new SeenLogins(options)
  }

  find(place: LoginPlace): Login | undefined | Promise<Login | undefined> {
    const { browser, key } = this.#handleOf(place)
    const cached = this.#cache.at(key)
    if (!cached) return this.#lookUp(browser, place.routeId).then((found) => this.#current(found))
    const isFresh = this.#now() - Math.max(cached.readAt, cached.login.lastSeenAt) < FRESH_MS
    return isFresh ? this.#current(cached) : this.#refreshed(cached)
  }

  async begin(place: LoginPlace, login: Login, origin: LoginOrigin, before?: string): Promise<void> {
    const { sealer, ids, maxOfUser = MAX_OF_USER } = this.#options
    const browser = browserOf(place)
    const browserBefore = before === undefined ? browser : browserOf({ secret: before, host: place.host })
    const newUser = userRow(ids.next(applicationUsers.prefix), login, origin)
    const id = ids.next(applicationSessions.prefix)
    const gone = await this.#store.write(async (writer) => {
      await holdKey(writer, sealer)
      const userId = await writer.logins.putUser(newUser)
      const moved = browserBefore === browser ? [] : await writer.logins.moveBrowser(browserBefore, browser)
      const older = await writer.logins.begin(sessionRow({ id, userId }, { place, login, origin }, sealer))
      const beyond = await writer.logins.removeBeyond(userId, maxOfUser, REMOVED_AT_ONCE)
      const touched = [...new Set([...moved, ...(older === undefined ? [] : [older]), ...beyond])]
      for (const each of touched) writer.changed(applicationSessions.kind, each)
      return touched
    })
    // The old secret is no longer valid.
    if (browserBefore !== browser) this.#forgetBrowser(browserBefore)
    // Cached only when it is read: another node may end it between the commit and this line.
    this.#forget(gone)
    // It ended on another node, which this one has not heard of yet.
    const known = this.#cache.get(browser, place.routeId)
    if (known) this.#cache.drop(known.id)
  }

  seen(place: LoginPlace, at: number): void {
    const cached = this.#cache.at(this.#handleOf(place).key)
    if (cached) this.#seen.note(cached, at)
  }

  async renew(place: LoginPlace, login: Login): Promise<void> {
    const { sealer } = this.#options
    const browser = browserOf(place)
    const id = await this.#store.write(async (writer) => {
      await holdKey(writer, sealer)
      const row = await writer.logins.at(browser, place.routeId)
      // Another login may have taken its place.
      if (row?.identity !== login.identity || row.created_at !== login.createdAt) return undefined
      const isThere = await writer.logins.renew({ id: row.id, ...changingColumns(row.id, login, sealer) })
      // Others hold the old values, and a provider may accept a token only once.
      if (isThere) writer.changed(applicationSessions.kind, row.id)
      return row.id
    })
    if (id !== undefined) this.#forget([id])
  }

  async end(place: Pick<LoginPlace, 'secret' | 'host'>): Promise<void> {
    const browser = browserOf(place)
    this.#forgetBrowser(browser)
    await this.#store.write(async (writer) => {
      for (const id of await writer.logins.removeBrowser(browser)) writer.changed(applicationSessions.kind, id)
    })
    // Entries that were read again while being removed.
    this.#forgetBrowser(browser)
  }

  async endUser(owner: LoginOwner, routeId: string): Promise<void> {
    const gone = await this.#store.write(async (writer) => {
      const ids = await writer.logins.removeOfUser(userKey(owner), routeId)
      for (const id of ids) writer.changed(applicationSessions.kind, id)
      return ids
    })
    this.#forget(gone)
  }

  /** Ends one login; gives whether there was one. */
  async revoke(id: string): Promise<boolean> {
    const wasThere = await this.#store.write(async (writer) => {
      const isGone = await writer.logins.removeSession(id)
      if (isGone) writer.changed(applicationSessions.kind, id)
      return isGone
    })
    this.#forget([id])
    return wasThere
  }

  /** Ends all logins of a user, and forgets the user; gives whether there was one. */
  async revokeUser(id: string): Promise<boolean> {
    const wasThere = await this.#store.write(async (writer) => {
      const isGone = await writer.logins.removeUser(id)
      if (isGone) writer.changed(applicationUsers.kind, id)
      return isGone
    })
    this.#forgetUsers(new Set([id]))
    return wasThere
  }

  /** Changes were missed, so nothing cached can be trusted. */
  async load(): Promise<void> {
    this.#cache.clear()
    this.#endings.noteAll()
  }

  async apply(changes: readonly Change[]): Promise<void> {
    const idsOf = (wanted: string) => changes.filter(({ kind }) => kind === wanted).map(({ id }) => id)
    this.#forget(idsOf(applicationSessions.kind))
    const users = new Set(idsOf(applicationUsers.kind))
    if (users.size > 0) this.#forgetUsers(users)
  }

  /** Writes what is still waiting. */
  async close(): Promise<void> {
    await this.#seen.close()
    this.#troubles.close()
  }

  /** Repeated calls for the same place skip the digest. */
  #handleOf(place: LoginPlace): Handle {
    const known = this.#handles.get(place)
    if (known) return known
    const browser = browserOf(place)
    const handle = { browser, key: keyOf(browser, place.routeId) }
    this.#handles.set(place, handle)
    return handle
  }

  /** The login, unless it has expired. */
  #current(cached: CachedLogin | undefined): Login | undefined {
    if (!cached) return undefined
    const now = this.#now()
    const isOver = cached.expiresAt !== null && cached.expiresAt <= now
    return isOver || cached.login.lastSeenAt <= now - MAX_IDLE_MS ? undefined : cached.login
  }

  /** Reads a cached login again; while the database is silent, the cached one counts. */
  async #refreshed(cached: CachedLogin): Promise<Login | undefined> {
    try {
      return this.#current(await this.#lookUp(cached.browser, cached.routeId))
    } catch (err) {
      this.#troubles.note({ err })
      // So that not every request waits.
      cached.readAt = this.#now()
      // It may have ended here meanwhile.
      return this.#cache.get(cached.browser, cached.routeId) === cached ? this.#current(cached) : undefined
    }
  }

  /** Requests of one browser for one route share one lookup. */
  #lookUp(browser: string, routeId: string): Promise<CachedLogin | undefined> {
    const key = `${browser} ${routeId}`
    const underWay = this.#lookups.get(key)
    if (underWay) return underWay
    if (this.#lookups.size >= MAX_LOOKUPS) {
      return Promise.reject(new Refusal('STORE_UNAVAILABLE', undefined, { headers: { 'retry-after': '1' } }))
    }
    const found = this.#read(browser, routeId).finally(() => this.#lookups.delete(key))
    this.#lookups.set(key, found)
    return found
  }

  async #read(browser: string, routeId: string): Promise<CachedLogin | undefined> {
    const { sealer, lookupMs: withinMs = LOOKUP_MS } = this.#options
    const { moment } = this.#endings
    const row = await this.#store.read(({ logins }) => logins.at(browser, routeId), { withinMs })
    const before = this.#cache.get(browser, routeId)
    if (before && before.id !== row?.id) this.#cache.drop(before.id)
    const login = row && loginOf(row, sealer)
    if (!row || !login) return undefined
    const lastSeenAt = Math.max(row.last_seen_at, this.#seen.pending(row.id))
    const cached: CachedLogin = {
      id: row.id,
      userId: row.user_id,
      browser,
      routeId,
      login: { ...login, lastSeenAt },
      expiresAt: row.expires_at,
      readAt: this.#now(),
      notedAt: lastSeenAt,
    }
    // It was read before it ended; this request may use it, the next one may not.
    if (!this.#endings.hasEnded([browser, row.id, row.user_id], moment)) this.#cache.set(cached)
    return cached
  }

  #forget(ids: readonly string[]): void {
    for (const id of ids) {
      this.#cache.drop(id)
      this.#endings.note(id)
    }
  }

  #forgetUsers(ids: ReadonlySet<string>): void {
    this.#cache.dropUsers(ids)
    for (const id of ids) this.#endings.note(id)
  }

  #forgetBrowser(browser: string): void {
    this.#cache.dropBrowser(browser)
    this.#endings.note(browser)
  }
}
