import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eachStore } from '../../test/support/databases.ts'
import { sealedBy, storeRows, type TestRow } from '../control/test-rows.ts'
import { httpsEdges } from '../resources/https-edges.ts'
import { reservedDomains } from '../resources/reserved-domains.ts'
import { tlsCertificates } from '../resources/tls-certificates.ts'
import { tlsEdges } from '../resources/tls-edges.ts'
import { openStore } from '../store/store.ts'
import { WantedNames } from './wanted-names.ts'

const edge = (id: string, ...names: readonly string[]): TestRow => ({
  id,
  kind: httpsEdges.kind,
  fields: { hostports: names.map((name) => `${name}:443`) },
})

const certificate = (id: string, name: string, issuedFor?: string): TestRow => ({
  id,
  kind: tlsCertificates.kind,
  fields: {
    ...{ certificate_pem: 'of a test', private_key_pem: 'key', not_after: '2030-01-01T00:00:00Z' },
    subject_alternative_names: { dns_names: [name], ips: [] },
    ...(issuedFor !== undefined && { issued_for: issuedFor }),
  },
})

const domain = (id: string, name: string, policy: object | null): TestRow => ({
  id,
  kind: reservedDomains.kind,
  fields: { domain: name, certificate_management_policy: policy },
})

const cases: readonly [what: string, rows: readonly TestRow[], wanted: readonly string[], wildcard?: string][] = [
  [
    'every name of an edge, once',
    [edge('e1', 'a.test.org', 'B.test.org'), edge('e2', '*.test.org')],
    ['*.test.org', 'a.test.org', 'b.test.org'],
  ],
  ['no name that nobody can issue for', [edge('e1', 'x.localhost', '*.localhost', 'intranet')], []],
  [
    'no name that an uploaded certificate covers',
    [edge('e1', 'a.test.org', 'b.a.test.org'), certificate('c1', '*.test.org')],
    ['b.a.test.org'],
  ],
  [
    'a name whose certificate was issued',
    [edge('e1', 'a.test.org'), certificate('c1', 'a.test.org', 'a.test.org')],
    ['a.test.org'],
  ],
  [
    'a reserved domain that asks for it',
    [domain('d1', 'a.test.org', { private_key_type: 'rsa' }), domain('d2', 'b.test.org', null)],
    ['a.test.org'],
  ],
  [
    'a TLS edge only where TLS ends',
    [{ id: 't1', kind: tlsEdges.kind, fields: { hostports: ['a.test.org:443'] } }],
    [],
  ],
  [
    'the wildcard of agents, and no edge below it',
    [edge('e1', 'a.test.org', 'b.a.test.org', 'test.org')],
    ['*.test.org', 'b.a.test.org', 'test.org'],
    '*.test.org',
  ],
  [
    'names below the wildcard that have a certificate or ask for one',
    [
      edge('e1', 'a.test.org'),
      certificate('c1', 'a.test.org', 'a.test.org'),
      domain('d1', 'b.test.org', { private_key_type: 'ecdsa' }),
    ],
    ['*.test.org', 'a.test.org', 'b.test.org'],
    '*.test.org',
  ],
  ['no wildcard of agents that was uploaded', [certificate('c1', '*.test.org')], [], '*.test.org'],
]

eachStore(
  (databases) => {
    for (const [what, rows, expected, wildcard] of cases) {
      test(`wanted: ${what}`, async (t) => {
        const store = await sealedBy(await openStore(await databases.url()))
        t.after(() => store.close())
        await storeRows(store, rows)
        let changes = 0
        const wanted = new WantedNames({ store, wildcard, onChange: () => changes++ })
        await wanted.load()
        assert.deepEqual(
          await store.read(({ certificates }) => certificates.due(1, 100)).then((names) => names.sort()),
          expected,
        )
        assert.equal(wanted.size, expected.length)
        assert.ok(expected.every((name) => wanted.get(name)?.name === name))
        assert.equal(changes, 1)
      })
    }
  },
  ['sqlite'],
)
