/** Writes the logins of visitors and the users behind them, inside one transaction. */
import { type Expression, type ExpressionBuilder, type RawBuilder, type SqlBool, sql } from 'kysely'
import { LoginReader, type StoredAnswer, type StoredLoginSession, type StoredLoginUser } from './login-reader.ts'
import type { Tables } from './tables.ts'

/** When a login or a user was last seen. */
export interface Seen {
  readonly id: string
  readonly at: number
}

type Sessions = ExpressionBuilder<Tables, 'login_sessions'>

export class LoginWriter extends LoginReader {
  /**
   * Stores a user who logs in, and returns the id, which stays that of the first login. Other writers of this user wait
   * until the transaction ends. Fields that the provider left empty this time keep their old values.
   */
  async putUser(user: StoredLoginUser): Promise<string> {
    const { id } = await this.db
      .insertInto('login_users')
      .values(user)
      .onConflict((oc) =>
        oc.column('key').doUpdateSet((eb) => ({
          username: orBefore(eb.ref('excluded.username'), eb.ref('login_users.username')),
          email: orBefore(eb.ref('excluded.email'), eb.ref('login_users.email')),
          name: orBefore(eb.ref('excluded.name'), eb.ref('login_users.name')),
          provider_url: orBefore(eb.ref('excluded.provider_url'), eb.ref('login_users.provider_url')),
          last_login_at: user.last_login_at,
          last_seen_at: user.last_seen_at,
        })),
      )
      .returning('id')
      .executeTakeFirstOrThrow()
    return id
  }

  /** Stores a login and removes an older one of the same browser and route; returns the id of the older one. */
  async begin(session: StoredLoginSession): Promise<string | undefined> {
    const [older] = await this.#remove((eb) =>
      eb.and([eb('browser', '=', session.browser), eb('route_id', '=', session.route_id)]),
    )
    await this.db.insertInto('login_sessions').values(session).execute()
    return older
  }

  /** Moves the logins of one browser to another one, which has none yet; returns their ids. */
  async moveBrowser(from: string, to: string): Promise<string[]> {
    const moved = await this.db
      .updateTable('login_sessions')
      .set({ browser: to })
      .where('browser', '=', from)
      .returning('id')
      .execute()
    return moved.map(({ id }) => id)
  }

  /** Changes a login; returns whether it still exists. */
  async renew({ id, ...change }: Renewed): Promise<boolean> {
    const changed = await this.db
      .updateTable('login_sessions')
      .set(change)
      .where('id', '=', id)
      .returning('id')
      .execute()
    return changed.length > 0
  }

  /** Stores when logins or users were last seen; a time before the stored one changes nothing. */
  async markSeen(table: 'login_sessions' | 'login_users', seen: readonly Seen[]): Promise<void> {
    if (seen.length === 0) return
    const rows = sql.join(seen.map(({ id, at }) => sql`(cast(${id} as text), cast(${at} as bigint))`))
    const target = sql.table(table)
    const ids = sql.join(seen.map(({ id }) => id))
    // Both databases name the columns of a values list `column1` and so on. Without the `in` clause SQLite scans the table.
    await sql`
      update ${target} set last_seen_at = seen.column2 from (values ${rows}) as seen
      where ${target}.id in (${ids}) and ${target}.id = seen.column1 and ${target}.last_seen_at < seen.column2
    `.execute(this.db)
  }

  /** Replaces the sealed text of a login, when the key is rotated. */
  async replaceKept(id: string, kept: string): Promise<void> {
    await this.db.updateTable('login_sessions').set({ kept }).where('id', '=', id).execute()
  }

  async removeSession(id: string): Promise<boolean> {
    return (await this.removeSessions([id])).length > 0
  }

  async removeSessions(ids: readonly string[]): Promise<string[]> {
    return this.#remove((eb) => eb('id', 'in', ids))
  }

  /** Removes a user with all its logins. */
  async removeUser(id: string): Promise<boolean> {
    const gone = await this.db.deleteFrom('login_users').where('id', '=', id).returning('id').execute()
    return gone.length > 0
  }

  /** Removes all logins of a browser on a host. Like all removals below, returns the ids of what it removed. */
  async removeBrowser(browser: string): Promise<string[]> {
    return this.#remove((eb) => eb('browser', '=', browser))
  }

  /** Removes the logins on one route of the user with this key. */
  async removeOfUser(key: string, routeId: string): Promise<string[]> {
    return this.#remove((eb) =>
      eb.and([
        eb('route_id', '=', routeId),
        eb('user_id', 'in', eb.selectFrom('login_users').select('id').where('key', '=', key)),
      ]),
    )
  }

  /** Removes a user's logins except the `keep` that were seen last; at most `limit` of them. */
  async removeBeyond(userId: string, keep: number, limit: number): Promise<string[]> {
    return this.#remove((eb) =>
      eb(
        'id',
        'in',
        eb
          .selectFrom('login_sessions as of_user')
          .select('of_user.id')
          .where('of_user.user_id', '=', userId)
          // By both columns of the index, so that the database reads the index in order without sorting.
          .orderBy('of_user.user_id', 'desc')
          .orderBy('of_user.last_seen_at', 'desc')
          .limit(limit)
          .offset(keep),
      ),
    )
  }

  /** Removes logins that have expired by `now`, at most `limit`. */
  async removeEnded(now: number, limit: number): Promise<string[]> {
    return this.#removeFirst('login_sessions', 'expires_at', sql`expires_at <= ${now}`, limit)
  }

  /** Removes logins that were last seen before `time`, at most `limit`, longest unseen first. */
  async removeUnseen(time: number, limit: number): Promise<string[]> {
    return this.#removeFirst('login_sessions', 'last_seen_at', sql`last_seen_at < ${time}`, limit)
  }

  /** Removes users without a login, at most `limit`, longest unseen first. */
  async removeUnusedUsers(limit: number): Promise<string[]> {
    const isUnused = sql`not exists (select 1 from login_sessions where login_sessions.user_id = first.id)`
    return this.#removeFirst('login_users', 'last_seen_at', isUnused, limit)
  }

  /**
   * Marks an answer as used; returns whether it was unused before. A concurrent call for the same answer waits until this
   * transaction ends.
   */
  async useAnswer(answer: StoredAnswer): Promise<boolean> {
    const added = await this.db
      .insertInto('used_answers')
      .values(answer)
      .onConflict((oc) => oc.column('key').doNothing())
      .returning('key')
      .execute()
    return added.length > 0
  }

  /** Removes all used answers whose key has this beginning, which has no wildcard of SQL. */
  async forgetAnswers(prefix: string): Promise<void> {
    await this.db.deleteFrom('used_answers').where('key', 'like', `${prefix}%`).execute()
  }

  /** Removes used answers that have expired by `now`, at most `limit`; returns their keys. */
  async removeAnswers(now: number, limit: number): Promise<string[]> {
    return this.#removeFirst('used_answers', 'expires_at', sql`expires_at <= ${now}`, limit)
  }

  /** Removes the first rows for which `which` holds, in the order of a time, at most `limit`; returns their keys. */
  async #removeFirst(
    table: 'login_sessions' | 'login_users' | 'used_answers',
    time: 'expires_at' | 'last_seen_at',
    which: RawBuilder<unknown>,
    limit: number,
  ): Promise<string[]> {
    const key = sql.ref(table === 'used_answers' ? 'key' : 'id')
    const { rows } = await sql<{ key: string }>`
      delete from ${sql.table(table)} where ${key} in (
        select ${key} from ${sql.table(table)} as first where ${which} order by ${sql.ref(time)} limit ${limit}
      ) returning ${key} as key
    `.execute(this.db)
    return rows.map((row) => row.key)
  }

  async #remove(which: (eb: Sessions) => Expression<SqlBool>): Promise<string[]> {
    const gone = await this.db.deleteFrom('login_sessions').where(which).returning('id').execute()
    return gone.map(({ id }) => id)
  }
}

type Renewed = Pick<StoredLoginSession, 'id' | 'login_user' | 'kept' | 'checked_at'>

/** The new value, or the old one when the new one is empty. */
function orBefore(now: Expression<string>, before: Expression<string>): Expression<string> {
  return sql<string>`case when ${now} = '' then ${before} else ${now} end`
}
