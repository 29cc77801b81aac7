import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eachStore } from '../../../test/support/databases.ts'
import { createLog } from '../../lib/log/create-log.ts'
import { sealedBy, storeRows } from '../records/testing/test-rows.ts'
import { httpsEdges } from '../resources/https-edges.ts'
import { reservedDomains } from '../resources/reserved-domains.ts'
import { tlsCertificates } from '../resources/tls-certificates.ts'
import { openStore } from '../store/store.ts'
import { ExpiredCertificates } from './expired-certificates.ts'
import { WantedNames } from './wanted-names.ts'

const log = createLog({ level: 'error', format: 'json', destination: { write: () => {} } })

const certificate = (id: string, name: string, notAfter: string, issuedFor: string | undefined) => ({
  id,
  kind: tlsCertificates.kind,
  fields: {
    certificate_pem: 'of a test',
    private_key_pem: 'key',
    not_after: notAfter,
    subject_alternative_names: { dns_names: [name], ips: [] },
    ...(issuedFor !== undefined && { issued_for: issuedFor }),
  },
})

eachStore(
  (databases) => {
    test('only issued certificates that have expired and are unused are removed', async (t) => {
      const store = await sealedBy(await openStore(await databases.url()))
      t.after(() => store.close())
      const old = '2029-12-01T00:00:00Z'
      const issued = (id: string, name: string, notAfter = old) => certificate(id, name, notAfter, name)
      await storeRows(store, [
        issued('cert_gone', 'gone.example.com'),
        issued('cert_served', 'served.example.com'),
        issued('cert_good', 'good.example.com', '2030-06-01T00:00:00Z'),
        issued('cert_just', 'just.example.com', '2029-12-31T23:00:00Z'),
        issued('cert_held', 'held.example.com'),
        certificate('cert_uploaded', 'uploaded.example.com', old, undefined),
        { id: 'edghts_1', kind: httpsEdges.kind, fields: { hostports: ['served.example.com:443'] } },
        { id: 'rd_1', kind: reservedDomains.kind, fields: { domain: 'held.example.com', certificate_id: 'cert_held' } },
      ])
      const wanted = new WantedNames({ store, onChange: () => {} })
      await wanted.load()
      const now = () => Date.UTC(2030, 0, 1)
      const expired = new ExpiredCertificates({ store, wanted, now, log })
      await expired.tidy()
      await expired.tidy()
      const left = await store.read((reader) => reader.page({ kind: tlsCertificates.kind, limit: 100 }))
      assert.deepEqual(left.map(({ id }) => id).sort(), [
        'cert_good',
        'cert_held',
        'cert_just',
        'cert_served',
        'cert_uploaded',
      ])
    })
  },
  ['sqlite'],
)
