import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import pg from 'pg'
import { type Platform, startPlatform } from '../support/platform.ts'
import { createDatabase, dropDatabase, startPostgres } from '../support/postgres.ts'

// Triggers of the database record which rows a call wrote, and in which transaction.
const AUDIT = `
  create table audit (tx bigint, place text, op text);
  create function note() returns trigger language plpgsql as $$
    begin insert into audit values (txid_current(), tg_table_name, lower(tg_op)); return null; end $$;
  do $$ declare t text; begin
    foreach t in array array['resources','modules','refs','claims','changes'] loop
      execute format('create trigger note after insert or update or delete on %I for each row execute function note()', t);
    end loop;
  end $$;`

describe('a write', () => {
  let platform: Platform
  let database: pg.Client
  let cleanUp: () => Promise<void>

  before(async () => {
    const shared = process.env.POSTERN_TEST_POSTGRES_URL
    const own = shared ? undefined : await startPostgres()
    const server = shared ?? own?.url ?? ''
    const url = await createDatabase(server)
    platform = await startPlatform({ databaseUrl: url })
    database = new pg.Client(url)
    await database.connect()
    await database.query(AUDIT)
    cleanUp = async () => {
      await database.end()
      await platform.stop()
      await dropDatabase(server, url)
      await own?.stop()
    }
  })
  after(() => cleanUp())

  /** The rows that `call` wrote, as `table op`, and the number of transactions they came in. */
  async function written(call: () => Promise<unknown>): Promise<{ rows: string[]; transactions: number }> {
    await database.query('truncate audit')
    await call()
    const { rows } = await database.query<{ tx: string; place: string; op: string }>('select * from audit')
    return {
      rows: rows.map(({ place, op }) => `${place} ${op}`).sort(),
      transactions: new Set(rows.map(({ tx }) => tx)).size,
    }
  }

  test('that creates an edge with modules is one transaction', async () => {
    const { admin } = platform
    const policy = await admin.create('/ip_policies')
    const backend = await admin.create('/backends/tunnel_group', { labels: { app: 'one' } })
    const made = await written(() =>
      admin.create('/edges/tls', {
        hostports: ['one.example.com:443', 'two.example.com:443'],
        backend: { backend_id: backend.id },
        ip_restriction: { ip_policy_ids: [policy.id] },
      }),
    )
    assert.deepEqual(made, {
      transactions: 1,
      rows: [
        'changes insert',
        'claims insert',
        'claims insert',
        'modules insert',
        'modules insert',
        'refs insert',
        'refs insert',
        'resources insert',
      ],
    })
  })

  test('that replaces a module touches only its rows', async () => {
    const { admin } = platform
    const [first, second] = [await admin.create('/ip_policies'), await admin.create('/ip_policies')]
    const edge = await admin.create('/edges/tcp', {
      hostports: ['tcp.example.com:20007'],
      ip_restriction: { ip_policy_ids: [first.id] },
      policy: { inbound: [{ actions: [{ type: 'deny' }] }] },
    })
    const put = await written(() => admin.put(`/edges/tcp/${edge.id}/ip_restriction`, { ip_policy_ids: [second.id] }))
    assert.deepEqual(put, {
      transactions: 1,
      rows: ['changes insert', 'modules update', 'refs delete', 'refs insert'],
    })
  })

  test('that changes nothing writes nothing', async () => {
    const { admin } = platform
    const edge = await admin.create('/edges/tcp')
    const nothing = { transactions: 0, rows: [] }
    assert.deepEqual(await written(() => admin.update(`/edges/tcp/${edge.id}`, {})), nothing)
    assert.deepEqual(await written(() => admin.delete(`/edges/tcp/${edge.id}/ip_restriction`)), nothing)
    const refused = () =>
      admin.refused('ERR_UNKNOWN_REFERENCE', 'PUT', `/edges/tcp/${edge.id}/backend`, {
        body: { backend_id: 'bkdtg_none' },
      })
    assert.deepEqual(await written(refused), nothing)
  })
})
