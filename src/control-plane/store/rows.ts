/** The contents of a database as rows of plain text, which either dialect can store; a backup consists of these. */
import { type Kysely, sql, type Transaction } from 'kysely'
import { OLDEST_CHANGE } from './feed.ts'
import type { Tables } from './tables.ts'

/** The table, and the values of its columns, which are all text. */
export interface StoredRow {
  readonly table: TableName
  readonly values: readonly (string | null)[]
}

/**
 * The tables in an order in which they can be filled, and their columns; the first `key` columns are the primary key.
 * Changes are left out: they are for running nodes, and none runs while a database is being filled. Logins of visitors are left
 * out: restoring a backup would bring back logins that were revoked since. So is what is online, which only running nodes know.
 * Used answers are included: otherwise each would be valid once more on the restored server. Accounts at certificate authorities
 * are included, and orders are not: their certificates are resources, and the rest can be ordered again.
 */
const tables = {
  meta: { columns: ['key', 'value'], key: 1 },
  resources: { columns: ['id', 'kind', 'parent_id', 'owner_id', 'created_at', 'fields'], key: 1 },
  modules: { columns: ['host_id', 'module', 'config'], key: 2 },
  refs: { columns: ['from_id', 'slot', 'to_id'], key: 3 },
  claims: { columns: ['scope', 'key', 'holder_id'], key: 2 },
  used_answers: { columns: ['key', 'expires_at'], key: 1 },
  acme_accounts: { columns: ['directory', 'key', 'url'], key: 1 },
} as const

type TableName = keyof typeof tables

/** Columns of `resources` that refer to another resource, which may come later in the backup. */
const LINKS = ['parent_id', 'owner_id'] as const

/** Rows read or written at a time; a row may have a megabyte. */
const AT_A_TIME = 100

/** Whether `table` is one of ours and `values` fit its columns. */
export function isStoredRow(table: unknown, values: readonly unknown[]): table is TableName {
  if (typeof table !== 'string' || !Object.hasOwn(tables, table)) return false
  const { columns } = tables[table as TableName] // looked up just above
  return (
    values.length === columns.length &&
    values.every((value, i) => (value === null ? isLink(columns[i]) : isTextOf(columns[i], value)))
  )
}

/** Every row, read in batches; within one transaction they form a consistent snapshot. */
export async function* allRows(db: Kysely<Tables>): AsyncGenerator<StoredRow> {
  for (const table of Object.keys(tables) as TableName[]) {
    const { columns, key } = tables[table]
    const keyColumns = sql.join(columns.slice(0, key).map((name) => sql.ref(name)))
    const selected = sql.join(columns.map((name) => sql.ref(name)))
    for (let after: readonly (string | null)[] | undefined; ; ) {
      const beyond = after ? sql`where (${keyColumns}) > (${sql.join(after.slice(0, key))})` : sql``
      const { rows } = await sql<Record<string, string | number | null>>`
        select ${selected} from ${sql.table(table)} ${beyond} order by ${keyColumns} limit ${sql.lit(AT_A_TIME)}
      `.execute(db)
      const some = rows.map((row) => columns.map((name) => row[name]?.toString() ?? null))
      for (const values of some) if (table !== 'meta' || values[0] !== OLDEST_CHANGE) yield { table, values }
      after = some.at(-1)
      if (some.length < AT_A_TIME) break
    }
  }
}

/** Whether nothing has been stored yet. */
export async function isEmpty(db: Kysely<Tables>): Promise<boolean> {
  const found = await Promise.all([
    db.selectFrom('resources').select('id').limit(1).execute(),
    db.selectFrom('meta').select('key').limit(1).execute(),
  ])
  return found.every((rows) => rows.length === 0)
}

/** Stores rows in an empty database; returns how many there were. */
export async function insertRows(tx: Transaction<Tables>, rows: AsyncIterable<StoredRow>): Promise<number> {
  const known = new Set<string>()
  const linkedLater: { id: string; links: Partial<Record<(typeof LINKS)[number], string>> }[] = []
  let waiting: StoredRow[] = []
  let count = 0
  const flush = async (): Promise<void> => {
    const [first] = waiting
    if (!first) return
    const columns = sql.join(tables[first.table].columns.map((name) => sql.ref(name)))
    const values = sql.join(waiting.map((row) => sql`(${sql.join(row.values)})`))
    await sql`insert into ${sql.table(first.table)} (${columns}) values ${values}`.execute(tx)
    count += waiting.length
    waiting = []
  }
  const link = async (): Promise<void> => {
    for (const { id, links } of linkedLater.splice(0)) {
      await tx.updateTable('resources').set(links).where('id', '=', id).execute()
    }
  }

  for await (const row of rows) {
    if (waiting.length >= AT_A_TIME || (waiting[0] && waiting[0].table !== row.table)) await flush()
    if (row.table !== 'resources') {
      waiting.push(row)
      continue
    }
    // A target may come later, if the clocks of two nodes disagreed. Such references are set once all rows are stored.
    const [id = ''] = row.values
    const absent = LINKS.map((name) => [name, row.values[tables.resources.columns.indexOf(name)]] as const).filter(
      ([, target]) => typeof target === 'string' && !known.has(target),
    )
    known.add(id ?? '')
    if (absent.length > 0) linkedLater.push({ id: id ?? '', links: Object.fromEntries(absent) })
    const missing = new Set<string>(absent.map(([name]) => name))
    const values = row.values.map((value, i) => (missing.has(tables.resources.columns[i] ?? '') ? null : value))
    waiting.push({ table: row.table, values })
  }
  await flush()
  await link()
  return count
}

/** Times are numbers in the database, which accepts them as text too. */
function isTextOf(column: string | undefined, value: unknown): boolean {
  return typeof value === 'string' && (column !== 'expires_at' || /^\d{1,15}$/.test(value))
}

function isLink(column: string | undefined): boolean {
  return (LINKS as readonly (string | undefined)[]).includes(column)
}
