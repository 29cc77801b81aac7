/** Reads and changes a database behind the server's back, like an attacker with access to it. */
import { DatabaseSync } from 'node:sqlite'
import { Client } from 'pg'

/** How long to wait for a server that writes, in milliseconds. */
const BUSY_MS = 30_000

/** Runs statements one after the other. */
export async function changeDatabase(databaseUrl: string, statements: readonly string[]): Promise<void> {
  for (const statement of statements) await queryDatabase(databaseUrl, statement)
}

/** Runs a statement; resolves with its rows. */
export async function queryDatabase(databaseUrl: string, statement: string): Promise<Record<string, unknown>[]> {
  if (databaseUrl.startsWith('sqlite:')) {
    // The server may be writing.
    const database = new DatabaseSync(databaseUrl.slice('sqlite:'.length), { timeout: BUSY_MS })
    try {
      return database.prepare(statement).all()
    } finally {
      database.close()
    }
  }
  const client = new Client({ connectionString: databaseUrl })
  await client.connect()
  try {
    return (await client.query(statement)).rows as Record<string, unknown>[] // rows are objects by column name
  } finally {
    await client.end()
  }
}
