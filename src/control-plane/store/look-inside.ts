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
  /** Holders of the claims that were asked for. */
  readonly held: readonly { readonly key: string; readonly holder_id: string }[]
}

/** Which claims to look for. */
interface Claimed {
  readonly scopes: readonly string[]
  readonly keys: readonly string[]
}

/** Reads the fact called `key`, and who holds these claims; rejects with the error of the database. */
export async function lookInside(databaseUrl: string, key: string, claimed: Claimed): Promise<Inside> {
  if (databaseUrl.startsWith('sqlite:')) return lookIntoFile(databaseUrl.slice('sqlite:'.length), key, claimed)
  const { openPostgres } = await import('./postgres.ts')
  const { dialect } = openPostgres(databaseUrl)
  const db = new Kysely<Tables>({ dialect })
  try {
    const found = await db.selectFrom('meta').select('value').where('key', '=', key).executeTakeFirst()
    const claims = db.selectFrom('claims').select(['key', 'holder_id']).where('scope', 'in', claimed.scopes)
    const held = claimed.keys.length === 0 ? [] : await claims.where('key', 'in', claimed.keys).execute()
    return { damage: undefined, fact: found?.value, held }
  } finally {
    await db.destroy()
  }
}

function lookIntoFile(path: string, key: string, { scopes, keys }: Claimed): Inside {
  const url = pathToFileURL(path)
  // Otherwise SQLite would leave new files beside it, which may belong to a user that the server is not.
  if (!existsSync(`${path}-wal`)) url.searchParams.set('immutable', '1')
  const db = new DatabaseSync(url, { readOnly: true })
  try {
    const [found = 'nothing'] = Object.values(db.prepare('pragma quick_check(1)').get() ?? {})
    if (found !== 'ok') return { damage: String(found), fact: undefined, held: [] }
    const row = db.prepare('select value from meta where key = ?').get(key)
    const held = db
      .prepare(`select key, holder_id from claims where scope in (${marks(scopes)}) and key in (${marks(keys)})`)
      .all(...scopes, ...keys)
      .map((claim) => ({ key: String(claim.key), holder_id: String(claim.holder_id) }))
    return { damage: undefined, fact: row === undefined ? undefined : String(row.value), held }
  } finally {
    db.close()
  }
}

function marks(values: readonly string[]): string {
  return values.map(() => '?').join(', ')
}
