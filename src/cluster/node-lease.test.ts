import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLog } from '../lib/log/log.ts'
import type { Reader } from '../store/reader.ts'
import type { Store } from '../store/store.ts'
import type { Writer } from '../store/writer.ts'
import { NodeLease } from './node-lease.ts'

const log = createLog({ level: 'silent', format: 'json', destination: { write() {} } })

test('what is online is announced after the lease expired, and after another database server took over', async () => {
  const database = { hadRun: false, server: 'first' }
  const online = {
    renew: async () => database.hadRun,
    nodes: async () => [],
    deadNodes: async () => [],
    server: async () => database.server,
  }
  // Nothing else of it is used.
  const store = {
    write: (work: (writer: Writer) => unknown) => work({ online } as unknown as Writer),
    read: (work: (reader: Reader) => unknown) => work({ online } as unknown as Reader),
  } as unknown as Store
  let announced = 0
  const node = { id: 'nd_1', name: 'node-1', address: '192.0.2.1:7444', region: 'r', version: '1', since: '' }
  const lease = new NodeLease({
    ...{ store, log, onNodes: () => {}, onBegun: () => void announced++ },
    facts: () => ({ ...node, agentAddresses: [], sessions: 0, isLeaving: false }),
  })
  await lease.start()
  assert.equal(announced, 1)
  database.hadRun = true
  await lease.renew()
  assert.equal(announced, 1)
  database.server = 'second'
  await lease.renew()
  assert.equal(announced, 2)
  await lease.renew()
  assert.equal(announced, 2)
  Object.assign(database, { hadRun: false, server: 'third' })
  await lease.renew()
  assert.equal(announced, 3)
  await lease.pause()
})
