/** Reads what somebody who stole the database could read. */
import { readFile } from 'node:fs/promises'
import { Client } from 'pg'

/** The contents of the tables for modules, resources, facts, logins and used answers, as text. */
export async function databaseContents(databaseUrl: string): Promise<string> {
  if (databaseUrl.startsWith('sqlite:')) {
    const file = databaseUrl.slice('sqlite:'.length)
    const parts = await Promise.all([file, `${file}-wal`].map((name) => readFile(name, 'latin1').catch(() => '')))
    return parts.join('')
  }
  const client = new Client({ connectionString: databaseUrl })
  await client.connect()
  try {
    const tables = ['modules', 'resources', 'meta', 'login_users', 'login_sessions', 'used_answers'].map(
      (table) => `SELECT t::text FROM ${table} t`,
    )
    const { rows } = await client.query(tables.join(' UNION ALL '))
    return JSON.stringify(rows)
  } finally {
    await client.end()
  }
}
