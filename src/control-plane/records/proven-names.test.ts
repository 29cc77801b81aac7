import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, describe, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { startTestResolver, type TestResolver } from '../../../test/support/test-resolver.ts'
import { until } from '../../../test/support/until.ts'
import { createLog } from '../../lib/log/create-log.ts'
import { recordLookUp } from '../../lib/net/record-look-up.ts'
import { openStore, type Store } from '../store/store.ts'
import { openProvenNames, type ProvenNames, vouchFor } from './proven-names.ts'

const HOUR_MS = 3_600_000

describe('names that are proven', () => {
  let dns: TestResolver
  let folder: string
  let store: Store
  let names: ProvenNames
  let now = Date.parse('2026-06-01T00:00:00Z')
  const log = createLog({ level: 'silent', format: 'json', destination: { write() {} } })
  const open = () =>
    openProvenNames({ store, domain: 'tunnels.test', lookUp: recordLookUp([dns.address]), now: () => now, log })

  before(async () => {
    dns = await startTestResolver()
    folder = await mkdtemp(join(tmpdir(), 'postern-names-'))
    store = await openStore(`sqlite:${join(folder, 'one.db')}`)
    names = await open()
  })
  after(async () => {
    await store.close()
    dns.stop()
    await rm(folder, { recursive: true, force: true })
  })
  beforeEach(() => {
    dns.mood = 'answers'
    dns.asked.length = 0
  })

  const prove = (name: string) => {
    const { txtName, txtValue } = names.recordsFor(name)
    dns.txt.set(txtName, [txtValue])
    return txtName
  }

  test('need the same record after a restart, and a different one for another name or server', async () => {
    const { txtValue } = names.recordsFor('a.test')
    assert.equal((await open()).recordsFor('a.test').txtValue, txtValue)
    assert.notEqual(names.recordsFor('b.test').txtValue, txtValue)
    const other = await openStore(`sqlite:${join(folder, 'other.db')}`)
    const lookUp = recordLookUp([dns.address])
    const there = await openProvenNames({ store: other, domain: 'tunnels.test', lookUp, now: () => now, log })
    assert.notEqual(there.recordsFor('a.test').txtValue, txtValue)
    await other.close()
  })

  test('include those below the domain of the server, without a lookup', async () => {
    for (const name of ['tunnels.test', 'x.tunnels.test', '*.tunnels.test', 'a.b.tunnels.test']) {
      assert.equal(await names.whyNot(name), undefined)
    }
    assert.deepEqual(dns.asked, [])
    assert.match((await names.whyNot('nottunnels.test')) ?? '', /_postern\.nottunnels\.test/)
  })

  test('count for an hour without a new lookup, and then as long as the record exists', async () => {
    const record = prove('kept.test')
    assert.equal(await names.whyNot('kept.test'), undefined)
    dns.txt.delete(record)
    dns.asked.length = 0
    assert.equal(await names.whyNot('kept.test'), undefined)
    assert.deepEqual(dns.asked, [])
    for (const when of ['a renewal looks again', 'and the next one too']) {
      assert.match((await names.whyNoLonger('kept.test')) ?? '', /is not proven/, when)
    }
    assert.match((await names.whyNot('kept.test')) ?? '', /is not proven/)
  })

  test('count for a month while DNS lookups fail, and no longer', async () => {
    prove('silent.test')
    assert.equal(await names.whyNot('silent.test'), undefined)
    dns.mood = 'fails'
    now += 2 * HOUR_MS
    assert.equal(await names.whyNot('silent.test'), undefined)
    assert.equal(await names.whyNoLonger('silent.test'), undefined)
    now += 31 * 24 * HOUR_MS
    assert.match((await names.whyNot('silent.test')) ?? '', /cannot be looked up/)
  })

  test('count for renewals when an admin holds them without proof', async () => {
    assert.equal(await names.whyNoLonger('of-an-admin.test'), undefined)
    assert.deepEqual(dns.asked, [])
  })

  test('count again when an admin assigns a name whose proof was lost, until it is proven and lost once more', async () => {
    const lose = async () => {
      const record = prove('taken-over.test')
      assert.equal(await names.whyNot('taken-over.test', { isFresh: false }), undefined)
      dns.txt.delete(record)
      assert.match((await names.whyNoLonger('taken-over.test')) ?? '', /is not proven/)
    }
    await lose()
    await store.write((writer) => vouchFor(writer, ['taken-over.test', 'never-proven.test']))
    assert.equal(await names.whyNoLonger('taken-over.test'), undefined)
    assert.match((await names.whyNot('taken-over.test')) ?? '', /is not proven/, 'members still need a record')
    assert.equal(await names.whyNoLonger('never-proven.test'), undefined)
    await lose()
  })

  test('are looked up once for concurrent questions', async () => {
    const { txtName, txtValue } = names.recordsFor('crowd.test')
    const { promise: answered, resolve: answer } = Promise.withResolvers<void>()
    const asked: string[] = []
    const texts = async (name: string) => {
      asked.push(name)
      await answered
      return [txtValue]
    }
    const lookUp = { texts, aliases: async () => [] }
    const slow = await openProvenNames({ store, domain: 'tunnels.test', lookUp, now: () => now, log })
    const all = Promise.all(Array.from({ length: 20 }, () => slow.whyNot('crowd.test')))
    await until('the first waits for the DNS', () => asked.length > 0)
    // Each question first reads the store, in turn; this read comes after theirs.
    await store.read((reader) => reader.meta('nothing'))
    await setImmediate()
    answer()
    assert.deepEqual(new Set(await all), new Set([undefined]))
    assert.deepEqual(asked, [txtName])
  })
})
