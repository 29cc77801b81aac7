/** Reads the logins of visitors and the users behind them. */
import type { Selectable } from 'kysely'
import { Queries } from './dialect.ts'
import type { Tables } from './tables.ts'

export type StoredLoginUser = Readonly<Selectable<Tables['login_users']>>
export type StoredAnswer = Readonly<Selectable<Tables['used_answers']>>
export type StoredLoginSession = Readonly<Selectable<Tables['login_sessions']>>

/** Which page to read, newest first. */
interface LoginPageOf {
  /** Only ids that sort before this one; it need not exist. */
  readonly beforeId?: string | undefined
  readonly limit: number
}

export class LoginReader extends Queries {
  /** The login of a browser on a route. */
  async at(browser: string, routeId: string): Promise<StoredLoginSession | undefined> {
    return this.db
      .selectFrom('login_sessions')
      .selectAll()
      .where('browser', '=', browser)
      .where('route_id', '=', routeId)
      .executeTakeFirst()
  }

  async session(id: string): Promise<StoredLoginSession | undefined> {
    return this.db.selectFrom('login_sessions').selectAll().where('id', '=', id).executeTakeFirst()
  }

  async sessions({ beforeId, limit }: LoginPageOf): Promise<StoredLoginSession[]> {
    let page = this.db.selectFrom('login_sessions').selectAll()
    if (beforeId !== undefined) page = page.where('id', '<', beforeId)
    return page.orderBy('id', 'desc').limit(limit).execute()
  }

  async user(id: string): Promise<StoredLoginUser | undefined> {
    return this.db.selectFrom('login_users').selectAll().where('id', '=', id).executeTakeFirst()
  }

  async users({ beforeId, limit }: LoginPageOf): Promise<StoredLoginUser[]> {
    let page = this.db.selectFrom('login_users').selectAll()
    if (beforeId !== undefined) page = page.where('id', '<', beforeId)
    return page.orderBy('id', 'desc').limit(limit).execute()
  }

  /** Those of these answers that are used. */
  async usedAnswers(keys: readonly string[]): Promise<StoredAnswer[]> {
    return this.db.selectFrom('used_answers').selectAll().where('key', 'in', keys).execute()
  }

  /** How many used answers have a key with this beginning, which has no wildcard of SQL. */
  async countAnswers(prefix: string): Promise<number> {
    const found = this.db.selectFrom('used_answers').where('key', 'like', `${prefix}%`)
    const row = await found.select((eb) => eb.fn.countAll<number>().as('count')).executeTakeFirstOrThrow()
    return row.count
  }

  /** How many rows the table has. */
  async count(table: 'login_sessions' | 'login_users' | 'used_answers'): Promise<number> {
    const row = await this.db
      .selectFrom(table)
      .select((eb) => eb.fn.countAll<number>().as('count'))
      .executeTakeFirstOrThrow()
    return row.count
  }

  /** The edges with most logins, the largest first, and how many each has. Reads the whole table. */
  async largestEdges(limit: number): Promise<{ readonly edgeId: string; readonly count: number }[]> {
    return this.db
      .selectFrom('login_sessions')
      .select((eb) => ['edge_id as edgeId', eb.fn.countAll<number>().as('count')])
      .groupBy('edge_id')
      .orderBy('count', 'desc')
      .orderBy('edge_id')
      .limit(limit)
      .execute()
  }

  /** The logins of an edge that were unseen for longest. Reads the whole table. */
  async longestUnseen(edgeId: string, limit: number): Promise<string[]> {
    const rows = await this.db
      .selectFrom('login_sessions')
      .select('id')
      .where('edge_id', '=', edgeId)
      .orderBy('last_seen_at')
      .limit(limit)
      .execute()
    return rows.map(({ id }) => id)
  }
}
