/** The stored logins of visitors, for the data planes that cache them. */
import {
  LOOKUP_MS,
  type LoginEndings,
  type LoginRows,
  type SeenLogin,
  type StoredLogin,
} from '../../link/planes/login-store.ts'
import type { UsedAnswer } from '../../model/logins.ts'
import { browserOf } from '../../modules/login/browser-digest.ts'
import { applicationSessions } from '../resources/application-sessions.ts'
import { applicationUsers } from '../resources/application-users.ts'
import type { ControlTools } from '../store/control-tools.ts'
import type { Change } from '../store/feed.ts'
import type { Followed } from '../store/feed-follower.ts'
import type { LoginReader } from '../store/login-reader.ts'
import type { Seen } from '../store/login-writer.ts'
import type { Writer } from '../store/writer.ts'
import { answerRow, changingColumns, loginOf, sessionRow, userKey, userRow } from './sealed-logins.ts'
import { holdKey } from './sealing.ts'

/** Most logins of one user: three browsers at more than 150 routes. A user with more is a script. */
const MAX_OF_USER = 500

/** Most excess logins removed at once: each new login adds at most one, and more exist only after the limit was lowered. */
const REMOVED_AT_ONCE = 100

export interface StoredLoginsOptions extends Pick<ControlTools, 'store' | 'sealer' | 'ids'> {
  /** Smaller ones are for tests. */
  readonly maxOfUser?: number
  readonly lookupMs?: number
}

/**
 * Takes endings. If it returns a promise, the endings take effect when that promise settles, which must be within a bounded
 * time.
 */
type HearEndings = (endings: LoginEndings) => void | Promise<void>

/** The only argument of a call, by its name. */
type Given<Name extends keyof LoginRows> = Parameters<LoginRows[Name]>[0]

export class StoredLogins implements LoginRows, Followed {
  readonly #options: Required<StoredLoginsOptions>
  readonly #listeners = new Set<HearEndings>()

  constructor(options: StoredLoginsOptions) {
    this.#options = { maxOfUser: MAX_OF_USER, lookupMs: LOOKUP_MS, ...options }
  }

  /**
   * Calls `heard` with logins that end or change from now on: at once when that happens here, and through the feed when it
   * happens at another node. Returns a function that stops this.
   */
  whenEnded(heard: HearEndings): () => void {
    this.#listeners.add(heard)
    return () => {
      this.#listeners.delete(heard)
    }
  }

  async loginAt({ browser, routeId }: Given<'loginAt'>): Promise<StoredLogin | undefined> {
    const row = await this.#options.store.read(({ logins }) => logins.at(browser, routeId), {
      withinMs: this.#options.lookupMs,
    })
    const login = row && loginOf(row, this.#options.sealer)
    return row && login && { id: row.id, userId: row.user_id, login, expiresAt: row.expires_at }
  }

  async beginLogin({ place, login, origin, before }: Given<'beginLogin'>): Promise<readonly string[]> {
    const browser = browserOf(place)
    const browserBefore = before === undefined ? browser : browserOf({ secret: before, host: place.host })
    const newUser = userRow(this.#options.ids.next(applicationUsers.prefix), login, origin)
    const id = this.#options.ids.next(applicationSessions.prefix)
    return this.#end(async (writer) => {
      await holdKey(writer, this.#options.sealer)
      const userId = await writer.logins.putUser(newUser)
      const moved = browserBefore === browser ? [] : await writer.logins.moveBrowser(browserBefore, browser)
      const older = await writer.logins.begin(
        sessionRow({ id, userId }, { place, login, origin }, this.#options.sealer),
      )
      const beyond = await writer.logins.removeBeyond(userId, this.#options.maxOfUser, REMOVED_AT_ONCE)
      return [...new Set([...moved, ...(older === undefined ? [] : [older]), ...beyond])]
    })
  }

  async renewLogin({ place, login }: Given<'renewLogin'>): Promise<string | undefined> {
    const browser = browserOf(place)
    const id = await this.#options.store.write(async (writer) => {
      await holdKey(writer, this.#options.sealer)
      const row = await writer.logins.at(browser, place.routeId)
      // Another login may have replaced this one.
      if (row?.identity !== login.identity || row.created_at !== login.createdAt) return undefined
      const isThere = await writer.logins.renew({ id: row.id, ...changingColumns(row.id, login, this.#options.sealer) })
      // Others hold the old values, and a provider may accept a token only once.
      if (isThere) writer.changed(applicationSessions.kind, row.id)
      return row.id
    })
    if (id !== undefined) await this.#tell({ isAll: false, ids: [id], userIds: [] })
    return id
  }

  async endBrowser(browser: string): Promise<void> {
    await this.#end(({ logins }) => logins.removeBrowser(browser))
  }

  async endLoginsOf({ owner, routeId, asked }: Given<'endLoginsOf'>): Promise<readonly string[] | undefined> {
    return this.#end(async ({ logins }) => {
      if (!(await logins.useAnswer(answerRow(asked)))) return undefined
      return logins.removeOfUser(userKey(owner), routeId)
    })
  }

  async useAnswer(answer: UsedAnswer): Promise<boolean> {
    return this.#options.store.write(({ logins }) => logins.useAnswer(answerRow(answer)))
  }

  async seenLogins(seen: readonly SeenLogin[]): Promise<void> {
    await this.#options.store.write(async ({ logins }) => {
      await logins.markSeen('login_sessions', seen)
      await logins.markSeen('login_users', latestOfUsers(seen))
    })
  }

  /** Reads logins for the API. */
  read<T>(query: (logins: LoginReader) => Promise<T>): Promise<T> {
    return this.#options.store.read(({ logins }) => query(logins))
  }

  /** Ends one login; resolves with whether there was one. */
  async revoke(id: string): Promise<boolean> {
    const wasThere = await this.#options.store.write(async (writer) => {
      const isGone = await writer.logins.removeSession(id)
      if (isGone) writer.changed(applicationSessions.kind, id)
      return isGone
    })
    await this.#tell({ isAll: false, ids: [id], userIds: [] })
    return wasThere
  }

  /** Ends all logins of a user and deletes the user; resolves with whether there was one. */
  async revokeUser(id: string): Promise<boolean> {
    const wasThere = await this.#options.store.write(async (writer) => {
      const isGone = await writer.logins.removeUser(id)
      if (isGone) writer.changed(applicationUsers.kind, id)
      return isGone
    })
    await this.#tell({ isAll: false, ids: [], userIds: [id] })
    return wasThere
  }

  /** Tells listeners that changes were missed, so that any cached login may have ended. */
  async load(): Promise<void> {
    void this.#tell({ isAll: true, ids: [], userIds: [] })
  }

  /** Does not wait for listeners: a slow one must not delay what others hear next. */
  async apply(changes: readonly Change[]): Promise<void> {
    const idsOf = (wanted: string) => changes.filter(({ kind }) => kind === wanted).map(({ id }) => id)
    const [ids, userIds] = [idsOf(applicationSessions.kind), idsOf(applicationUsers.kind)]
    if (ids.length + userIds.length > 0) void this.#tell({ isAll: false, ids, userIds })
  }

  /**
   * Announces the logins that `write` ends or changes. One that ended at one data plane must not be accepted at another, so
   * callers wait until all have heard.
   */
  async #end<Ids extends readonly string[] | undefined>(write: (writer: Writer) => Promise<Ids>): Promise<Ids> {
    const ids = await this.#options.store.write(async (writer) => {
      const written = await write(writer)
      for (const id of written ?? []) writer.changed(applicationSessions.kind, id)
      return written
    })
    if (ids && ids.length > 0) await this.#tell({ isAll: false, ids, userIds: [] })
    return ids
  }

  /** Never rejects: a listener that fails is a plane that is gone, which is told that anything may have ended when it is back. */
  async #tell(endings: LoginEndings): Promise<void> {
    await Promise.allSettled([...this.#listeners].map(async (heard) => heard(endings)))
  }
}

function latestOfUsers(seen: readonly SeenLogin[]): Seen[] {
  const latest = new Map<string, number>()
  for (const { userId, at } of seen) latest.set(userId, Math.max(at, latest.get(userId) ?? 0))
  return [...latest].map(([id, at]) => ({ id, at }))
}
