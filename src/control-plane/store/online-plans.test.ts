/** The cost of reading what is online grows with the answer, not with all that is online. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { CompiledQuery, Kysely, type Transaction } from 'kysely'
import { changeDatabase } from '../../../test/support/change-database.ts'
import { eachStore } from '../../../test/support/databases.ts'
import type { OpenedDialect } from './dialect.ts'
import { OnlineWriter } from './online-writer.ts'
import { openPostgres } from './postgres.ts'
import { openSqlite } from './sqlite.ts'
import { openStore } from './store.ts'
import type { Tables } from './tables.ts'
import { holderAt, placeAt, sessionAt, tunnelAt } from './testing/test-online-rows.ts'

const ROWS = 50_000
/** The newest rows belong to a node that was lost. */
const LIVE_ROWS = 30_000
const LIMIT = 50
/** A call may read this many rows of each table for each item that it is about; the whole table has twenty times as many. */
const LOOKED_AT = 50

const range = Array.from({ length: LIMIT }, (_, i) => 100_000 + i * 7)
const [places, ids] = [range.map((i) => `p_${i}`), range.map((i) => `tn_${i}`)]
const holders = range.map((i) => holderAt(`n_${i % 4}`, `p_${i}`, `tn_${i}`))

const calls: Record<string, (online: OnlineWriter) => Promise<unknown>> = {
  holders: (online) => online.holders(places),
  holdersOfPorts: (online) => online.holdersOfPorts(range.map((_, i) => i * 7)),
  'the first ports': (online) => online.ports({ limit: LIMIT }),
  'further ports': (online) => online.ports({ limit: LIMIT, after: { port: 5000, place: 'p_105000' } }),
  'tunnels with a rare label': (online) => online.tunnelsWith(['all=', 'parity=0', 'rare='], LIMIT),
  'tunnels with common labels': (online) => online.tunnelsWith(['all='], LIMIT),
  'the first sessions': (online) => online.sessions({ limit: LIMIT }),
  'further sessions': (online) => online.sessions({ limit: LIMIT, beforeId: 'ts_145000' }),
  'the first tunnels': (online) => online.tunnels({ limit: LIMIT }),
  'further tunnels': (online) => online.tunnels({ limit: LIMIT, beforeId: 'tn_145000' }),
  'the first endpoints': (online) => online.endpoints({ limit: LIMIT }),
  'further endpoints': (online) => online.endpoints({ limit: LIMIT, beforeId: 'ep_145000' }),
  session: (online) => online.session('ts_100001'),
  tunnel: (online) => online.tunnel('tn_100001'),
  endpoint: (online) => online.endpoint('ep_100002'),
  sessionsById: (online) => online.sessionsById(range.map((i) => `ts_${i}`)),
  tunnelsOf: (online) => online.tunnelsOf(range.map((i) => `ts_${i}`)),
  putSessions: (online) => online.putSessions(range.map((i) => sessionAt('n_1', `ts_${i}`))),
  keepSessions: (online) => online.keepSessions(range.map((i) => sessionAt('n_1', `ts_${i}`))),
  removeSessions: (online) =>
    online.removeSessions(
      'n_0',
      range.map((i) => `ts_${i}`),
    ),
  putTunnels: (online) =>
    online.putTunnels(
      ids.map((id, i) => tunnelAt('n_1', id, { endpointId: `ep_${100_000 + 2 * i}`, pairs: ['all='] })),
    ),
  keepTunnels: (online) => online.keepTunnels(ids.map((id) => tunnelAt('n_1', id, { pairs: ['all='] }))),
  removeTunnels: (online) => online.removeTunnels('n_0', ids),
  lockAddresses: (online) => online.lockAddresses([...places, 'p_new']),
  setAddresses: (online) => online.setAddresses(places.map((place) => placeAt(place))),
  putHolders: (online) => online.putHolders(holders),
  removeHolders: (online) => online.removeHolders(holders),
  dropHolders: (online) => online.dropHolders(holders),
  dropEmptyAddresses: (online) => online.dropEmptyAddresses(places),
  sweep: (online) => online.sweep('n_lost', LIMIT),
  'a sweep of holders': (online) => online.sweep('n_held', LIMIT),
}

class Undone extends Error {}

describe('the plan of each query', () => {
  eachStore((kind) => {
    let url: string
    let opened: OpenedDialect
    let db: Kysely<Tables>
    const asked: CompiledQuery[] = []
    before(async () => {
      url = await kind.url()
      await (await openStore(url)).close()
      await changeDatabase(url, FILL)
      opened = kind.name === 'postgres' ? openPostgres(url) : await openSqlite(url.slice('sqlite:'.length))
      db = new Kysely<Tables>({ dialect: opened.dialect, log: ({ query }) => void asked.push(query) })
    })
    after(async () => {
      await db.destroy()
      await opened.close()
    })

    /** Runs `work` and rolls it back. */
    const undo = async (work: (tx: Transaction<Tables>) => Promise<void>) => {
      const done = db.transaction().execute(async (tx) => {
        await work(tx)
        throw new Undone()
      })
      await assert.rejects(done, Undone)
    }

    for (const statistics of ['without statistics', 'with statistics']) {
      describe(statistics, () => {
        before(async () => {
          if (statistics === 'with statistics') await changeDatabase(url, ['analyze'])
        })
        for (const [name, call] of Object.entries(calls)) {
          test(name, async () => {
            asked.length = 0
            await undo(async (tx) => void (await call(new OnlineWriter(tx, opened.facts))))
            const queries = asked.filter(({ sql }) => /^\s*(select|insert|update|delete|with)\b/.test(sql))
            assert.ok(queries.length > 0)
            // All queries in order, so that each finds what it found before.
            await undo(async (tx) => {
              for (const query of queries) await checks[kind.name](tx, query)
            })
          })
        }
      })
    }
  })
})

/** Fails when a query reads a table from one end to the other. */
const checks = {
  async sqlite(tx: Transaction<Tables>, { sql, parameters }: CompiledQuery): Promise<void> {
    const { rows } = await tx.executeQuery<{ detail: string }>(
      CompiledQuery.raw(`explain query plan ${sql}`, [...parameters]),
    )
    const scans = rows.map(({ detail }) => detail).filter((detail) => /^SCAN (online_|place|label|other)/.test(detail))
    assert.deepEqual(scans, [], sql)
    // Run only so that the next query finds what it found before.
    await tx.executeQuery(CompiledQuery.raw(sql, [...parameters]))
  },
  async postgres(tx: Transaction<Tables>, { sql, parameters }: CompiledQuery): Promise<void> {
    const { rows } = await tx.executeQuery<{ 'QUERY PLAN': { Plan: PlanNode }[] }>(
      CompiledQuery.raw(`explain (analyze, format json) ${sql}`, [...parameters]),
    )
    const scans = rows.flatMap((row) => row['QUERY PLAN'].flatMap(({ Plan }) => [...scansOf(Plan)]))
    for (const scan of scans) {
      if (scan['Relation Name'] === 'nodes') continue
      const what = `${scan['Node Type']} of ${scan['Relation Name']} by ${scan['Index Name']} in ${sql}`
      assert.match(scan['Node Type'], /^Index (Only )?Scan$/, what)
      assert.ok(scan['Index Cond'], what)
      const rowsRead = scan['Actual Rows'] + (scan['Rows Removed by Filter'] ?? 0)
      assert.ok(rowsRead * scan['Actual Loops'] <= LOOKED_AT * LIMIT, `${rowsRead} rows: ${what}`)
    }
  },
}

/** The used fields of one step of a PostgreSQL plan. */
interface PlanNode {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Index Name'?: string
  readonly 'Index Cond'?: string
  readonly 'Actual Rows': number
  readonly 'Actual Loops': number
  readonly 'Rows Removed by Filter'?: number
  readonly Plans?: readonly PlanNode[]
}

function* scansOf(node: PlanNode): Generator<PlanNode> {
  if (node['Node Type'].endsWith('Scan') && node['Relation Name'] !== undefined) yield node
  for (const each of node.Plans ?? []) yield* scansOf(each)
}

/** One row for each number. */
const each = `with recursive r(i) as (select 100000 union all select i + 1 from r where i < ${100_000 + ROWS - 1})`
const nodeOfRow = `case when i < ${100_000 + LIVE_ROWS} then 'n_' || (i % 4) else 'n_lost' end`
const HELD_ONLY = `case when i < ${100_000 + LIVE_ROWS} then 'n_' || (i % 4) else 'n_held' end`

const FILL = [
  ...['n_0', 'n_1', 'n_2', 'n_3', 'n_lost', 'n_held'].map(
    (id) =>
      `insert into nodes values ('${id}', '${id}', '', '[]', '', '', '', 0, 0, ${/\d/.test(id) ? 9_000_000_000_000 : 0})`,
  ),
  `insert into online_sessions ${each} select 'ts_' || i, ${nodeOfRow}, 'p', 'cr_' || (i % 9), null, '{}' from r`,
  `insert into online_tunnels ${each} select 'tn_' || i, ${nodeOfRow}, 'p', 'ts_' || i,
    case when i % 2 = 0 then 'ep_' || i end, '{}' from r`,
  `insert into online_labels ${each} select 'all=', 'tn_' || i, ${nodeOfRow} from r`,
  `insert into online_labels ${each} select 'parity=' || (i % 2), 'tn_' || i, ${nodeOfRow} from r`,
  `insert into online_labels ${each} select 'rare=', 'tn_' || i, ${nodeOfRow} from r where i % 1000 = 0`,
  `insert into places ${each} select 'p_' || i, 'usr_1', 0, '', 0, case when i < 120000 then i - 100000 end, '{}' from r`,
  `insert into place_holders ${each} select 'p_' || i, '', 'tn_' || i, 'ts_' || i, ${HELD_ONLY}, 'p', 'v' from r`,
]
