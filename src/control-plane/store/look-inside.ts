/** Looks into a database that may be damaged or that of another server, and changes nothing there. */
import { existsSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { Kysely } from 'kysely'
import type { Tables } from './tables.ts'

interface Inside {
  /** What SQLite finds wrong with the file; undefined if nothing. */
  readonly damage: string | undefined
  readonly fact: string | undefined
}

/** Reads the fact called `key`; rejects with the error of the database. */
export async function lookInside(databaseUrl: string, key: string): Promise<Inside> {
  if (databaseUrl.startsWith('sqlite:')) return lookIntoFile(databaseUrl.slice('sqlite:'.length), key)
  const { openPostgres } = await import('./postgres.ts')
  const { dialect } = openPostgres(databaseUrl)
  const db = new Kysely<Tables>({ dialect })
  try {
    const found = await db.selectFrom('meta').select('value').where('key', '=', key).executeTakeFirst()
    return { damage: undefined, fact: found?.value }
  } finally {
    await db.destroy()
  }
}

function lookIntoFile(path: string, key: string): Inside {
  const url = pathToFileURL(path)
  // Otherwise SQLite would leave new files beside it, which may belong to a user that the server is not.
  if (!existsSync(`${path}-wal`)) url.searchParams.set('immutable', '1')
  const db = new DatabaseSync(url, { readOnly: true })
  try {
    const [found = 'nothing'] = Object.values(db.prepare('pragma quick_check(1)').get() ?? {})
    if (found !== 'ok') return { damage: String(found), fact: undefined }
    const row = db.prepare('select value from meta where key = ?').get(key)
    return { damage: undefined, fact: row === undefined ? undefined : String(row.value) }
  } finally {
    db.close()
  }
}
