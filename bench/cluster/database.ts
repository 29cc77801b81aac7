/** One PostgreSQL for all nodes of a row, as an operator would run it, and its CPU time. */
import { Client } from 'pg'
import { type Postgres, startPostgres } from '../../test/support/postgres.ts'
import { cpuSeconds, treeOf } from '../stage/proc.ts'

export interface Database {
  /** Creates an empty database; returns its URL. */
  create(): Promise<string>
  /** CPU seconds that all its processes have used so far. */
  cpu(): number
  stop(): Promise<void>
}

export async function startDatabase(): Promise<Database> {
  // Every commit goes to the disk.
  const postgres = await startPostgres({ durable: true })
  const root = await rootOf(postgres)
  return {
    create: () => postgres.createDatabase(),
    // A process includes the time of its children that have ended.
    cpu: () => cpuSeconds([root]),
    stop: () => postgres.stop(),
  }
}

/** Runs statements in order, outside of any transaction. */
export async function execute(url: string, statements: readonly string[]): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    for (const statement of statements) await client.query(statement)
  } finally {
    await client.end()
  }
}

/** The parent of all processes of the server. */
async function rootOf({ url }: Postgres): Promise<number> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
    const [own] = treeOf(rows.map(({ pid }) => pid))
    if (!own) throw new Error('the process of PostgreSQL is not on this machine')
    return own.parent
  } finally {
    await client.end()
  }
}
