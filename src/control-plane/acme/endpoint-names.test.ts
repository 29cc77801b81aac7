import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eachStore } from '../../../test/support/databases.ts'
import { createLog } from '../../lib/log/create-log.ts'
import { sealedBy } from '../records/testing/test-rows.ts'
import { nameStage } from '../store/certificate-reader.ts'
import { openStore } from '../store/store.ts'
import { EndpointNames, type EndpointNamesOptions } from './endpoint-names.ts'

const log = createLog({ level: 'error', format: 'json', destination: { write: () => {} } })
const of = (name: string) => ({ name, keyType: 'ecdsa' as const, domainIds: [] })

eachStore(
  (databases) => {
    test('names of agents below the domain are managed within a bound, while an agent is online', async (t) => {
      const store = await sealedBy(await openStore(await databases.url()))
      t.after(() => store.close())
      const issued = ['old.test.org', 'edge.other.org']
      const online = new Set(['new.test.org', 'late.test.org', 'old.test.org', 'begun.test.org'])
      let changes = 0
      const wanted: EndpointNamesOptions['wanted'] = {
        get: (name) => (name === 'edge.test.org' ? of(name) : undefined),
        issuedFor: (name) => (issued.includes(name) ? 'cert_1' : undefined),
        isUploaded: (name) => name === 'uploaded.test.org',
        issuedAlone: () => issued,
      }
      const names = new EndpointNames({
        ...{ store, wanted, domain: 'test.org', perWeek: 2, now: Date.now, log },
        isOnline: async (name) => online.has(name),
        onChange: () => changes++,
      })
      const started = ['new.test.org', 'a.b.test.org', 'x.other.org', 'test.org', 'edge.test.org', 'uploaded.test.org']
      for (const name of started) await names.started(name)
      assert.deepEqual(await store.read(({ certificates }) => certificates.due(nameStage.first, 10)), ['new.test.org'])
      assert.equal(changes, 1)

      const first = (name: string) => names.get({ name, stage: nameStage.first })
      assert.deepEqual(await first('new.test.org'), { ...of('new.test.org'), perWeek: 2 })
      assert.equal(await first('gone.test.org'), undefined)
      assert.equal(await first('a.b.test.org'), undefined)

      // The bound is reached: names with a certificate or an order go on, and no others begin.
      issued.push('new.test.org')
      await names.started('late.test.org')
      assert.equal(changes, 1)
      assert.equal(await first('late.test.org'), undefined)
      assert.deepEqual(await names.get({ name: 'begun.test.org', stage: nameStage.ordering }), of('begun.test.org'))
      assert.deepEqual(await names.get({ name: 'old.test.org', stage: nameStage.renewal }), of('old.test.org'))
      await names.started('old.test.org')
      assert.equal(changes, 2)

      // Agents that come back cost no write.
      const reading = new EndpointNames({
        ...{ wanted, domain: 'test.org', perWeek: 9, now: Date.now, log, onChange: () => changes++ },
        store: { read: (query) => store.read(query), write: () => assert.fail('it was written') },
        isOnline: async (name) => online.has(name),
      })
      for (const name of ['new.test.org', 'old.test.org', 'new.test.org']) await reading.started(name)
      assert.equal(changes, 2)
    })
  },
  ['sqlite'],
)
