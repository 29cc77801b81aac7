import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLog } from '../../lib/log/create-log.ts'
import type { Reader } from '../store/reader.ts'
import type { Store } from '../store/store.ts'
import type { Writer } from '../store/writer.ts'
import { NodeLease } from './node-lease.ts'

const log = createLog({ level: 'silent', format: 'json', destination: { write() {} } })

const node = { id: 'nd_1', name: 'node-1', address: '192.0.2.1:7444', region: 'r', version: '1', since: '' }

/** A lease, and the database that it is renewed in. */
function leaseAndDatabase() {
  const database = {
    hadRun: false,
    server: 'first',
    isAway: false,
    asked: 0,
    dead: [] as string[],
    lost: [] as string[],
    gone: [] as string[],
    swept: [] as string[],
  }
  const online = {
    renew: async () => {
      database.asked++
      if (database.isAway) throw new Error('the database is away')
      return database.hadRun
    },
    prolong: async () => {
      if (database.isAway) throw new Error('the database is away')
      if (database.hadRun) database.asked++
      return database.hadRun
    },
    nodes: async () => [],
    deadNodes: async () => database.dead.map((id) => ({ ...node, id, hasLeft: !database.lost.includes(id) })),
    sweep: async (id: string) => {
      database.swept.push(id)
      return 0
    },
    server: async () => database.server,
  }
  // Nothing else of it is used.
  const store = {
    write: (work: (writer: Writer) => unknown) => work({ online } as unknown as Writer),
    read: (work: (reader: Reader) => unknown) => work({ online } as unknown as Reader),
  } as unknown as Store
  const heard = { announced: 0, isSettled: true }
  const lease = new NodeLease({
    ...{ store, log, onBegun: () => void heard.announced++ },
    onNodes: (_, { isSettled }) => {
      heard.isSettled = isSettled
    },
    isGone: (id) => database.gone.includes(id),
    facts: () => ({ ...node, agentAddresses: [], sessions: 0, isLeaving: false }),
  })
  return { lease, database, heard }
}

test('what is online is announced after the lease expired, and after another database server took over', async () => {
  const { lease, database, heard } = leaseAndDatabase()
  await lease.start()
  assert.equal(heard.announced, 1)
  database.hadRun = true
  await lease.renew()
  assert.equal(heard.announced, 1)
  database.server = 'second'
  await lease.renew()
  assert.equal(heard.announced, 2)
  await lease.renew()
  assert.equal(heard.announced, 2)
  Object.assign(database, { hadRun: false, server: 'third' })
  await lease.renew()
  assert.equal(heard.announced, 3)
  await lease.pause()
})

test('what a node with a lost lease had is swept when the node is gone, not before', async (t) => {
  const { lease, database } = leaseAndDatabase()
  let now = 1000
  t.mock.method(performance, 'now', () => now)
  Object.assign(database, { dead: ['nd_2', 'nd_3', 'nd_4'], lost: ['nd_2', 'nd_3'], gone: ['nd_3'] })
  await lease.start()
  now += 5000
  await lease.renew()
  await lease.pause()
  assert.deepEqual(database.swept, ['nd_3', 'nd_4'])
})

test('after the database was away, other nodes have a few seconds before they are dead', async (t) => {
  const { lease, database, heard } = leaseAndDatabase()
  let now = 1000
  t.mock.method(performance, 'now', () => now)
  database.dead = ['nd_2']
  await lease.start()
  now += 4000
  await lease.renew()
  // It may have waited for the database itself.
  assert.deepEqual([heard.isSettled, database.swept], [true, []])
  now += 1000
  await lease.renew()
  assert.deepEqual([heard.isSettled, await lease.catchUp(), database.swept], [true, true, ['nd_2']])
  database.isAway = true
  now += 5500
  assert.equal(await lease.catchUp(), false)
  const { asked } = database
  assert.equal(await lease.catchUp(), false)
  assert.equal(database.asked, asked, 'not for each visitor')
  assert.equal(await lease.renew(), false)
  database.isAway = false
  now += 500
  // The nodes are known when this is over, so no answer comes before they are.
  assert.equal(await lease.catchUp(), true)
  assert.deepEqual([heard.isSettled, database.swept], [false, ['nd_2']])
  now += 4000
  await lease.renew()
  assert.deepEqual([heard.isSettled, database.swept], [false, ['nd_2']])
  now += 1000
  await lease.renew()
  assert.deepEqual([heard.isSettled, database.swept], [true, ['nd_2', 'nd_2']])
  await lease.pause()
  const renewed = database.asked
  now += 6000
  assert.deepEqual([await lease.renew(), await lease.catchUp(), database.asked], [false, true, renewed])
})
