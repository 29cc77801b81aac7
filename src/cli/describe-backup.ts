/** Describes the content of a backup, after making it or before restoring it. */

import { countOf } from '../lib/text/plural.ts'
import { printable } from '../lib/text/printable.ts'
import type { inspect } from '../server/compose/backup-database.ts'

type Contents = Awaited<ReturnType<typeof inspect>>

const databases = { sqlite: 'SQLite', postgres: 'PostgreSQL' } as const

export function describeBackup({ version, createdAt, database, rows, kinds }: Contents): string {
  const made = `Created ${printable(createdAt)} by Postern ${printable(version)} on ${databases[database]}; it holds the key and ${countOf(rows, 'row')}:\n`
  const counts = [...kinds].sort(([a], [b]) => (a < b ? -1 : 1))
  return made + counts.map(([kind, count]) => `${String(count).padStart(8)}  ${printable(kind)}\n`).join('')
}
