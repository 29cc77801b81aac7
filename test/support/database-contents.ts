/** What somebody would read who got hold of a database. */
import { readFile } from 'node:fs/promises'
import { Client } from 'pg'

/** All that a database holds of modules and resources, as text. */
export async function databaseContents(databaseUrl: string): Promise<string> {
  if (databaseUrl.startsWith('sqlite:')) {
    const file = databaseUrl.slice('sqlite:'.length)
    const parts = await Promise.all([file, `${file}-wal`].map((name) => readFile(name, 'latin1').catch(() => '')))
    return parts.join('')
  }
  const client = new Client({ connectionString: databaseUrl })
  await client.connect()
  try {
    const { rows } = await client.query('SELECT t::text FROM modules t UNION ALL SELECT t::text FROM resources t')
    return JSON.stringify(rows)
  } finally {
    await client.end()
  }
}
