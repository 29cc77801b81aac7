import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { eachStore } from '../../../test/support/databases.ts'
import { sealedBy, storeRows, type TestRow } from '../records/testing/test-rows.ts'
import { agentIngresses } from '../resources/agent-ingresses.ts'
import { httpsEdges } from '../resources/https-edges.ts'
import { reservedDomains } from '../resources/reserved-domains.ts'
import { tlsCertificates } from '../resources/tls-certificates.ts'
import { tlsEdges } from '../resources/tls-edges.ts'
import { nameStage } from '../store/certificate-reader.ts'
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

const ingress = (id: string, name: string, policy: object | null, managed?: object): TestRow => ({
  id,
  kind: agentIngresses.kind,
  fields: { domain: name, certificate_management_policy: policy, ...(managed && { managed }) },
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
    'an agent ingress that asks for it, also below the wildcard of agents',
    [ingress('i1', 'A.test.org', { private_key_type: 'ecdsa' }), ingress('i2', 'b.test.org', null)],
    ['*.test.org', 'a.test.org'],
    '*.test.org',
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

    test('a resource that replaces another one for the same name gets its status', async (t) => {
      const store = await sealedBy(await openStore(await databases.url()))
      t.after(() => store.close())
      const policy = { private_key_type: 'ecdsa' }
      const reported = { certificate_id: 'c1', status: { renews_at: '2030-01-01T00:00:00Z', provisioning_job: null } }
      const waiting = { certificate_id: null, status: { renews_at: null, provisioning_job: {} } }
      const [a, b] = ['a.test.org', 'b.test.org']
      const rows = [certificate('c1', a, a), ingress('i1', a, policy, reported), ingress('i2', b, policy, reported)]
      await storeRows(store, rows)
      const wanted = new WantedNames({ store, onChange: () => {} })
      await wanted.load()
      const due = () => store.read(({ certificates }) => certificates.due(nameStage.renewal, 10))
      const renewLater = async () => {
        const kept = { stage: nameStage.renewal, dueInMs: 1e9, orderKey: '', state: '{}' }
        for (const name of [a, b]) await store.write(({ certificates }) => certificates.keep(name, kept))
      }
      await renewLater()
      // All in one batch: one is deleted and created again, the other has its policy cleared and set again.
      await store.write(async (writer) => {
        await writer.remove('i1')
        await writer.replaceFields('i2', { domain: b, certificate_management_policy: policy, managed: waiting })
      })
      await storeRows(store, [ingress('i3', a, policy, waiting)])
      const { kind } = agentIngresses
      await wanted.apply(['i1', 'i2', 'i3'].map((id, i) => ({ revision: i, kind, id })))
      assert.deepEqual((await due()).sort(), [a, b])
      // It still waits for work in progress, which need not be checked again for each step.
      await renewLater()
      await wanted.apply([{ revision: 3, kind, id: 'i3' }])
      assert.deepEqual(await due(), [])
    })

    test('after any series of changes, the wanted names are those that all resources together want', async (t) => {
      const store = await sealedBy(await openStore(await databases.url()))
      t.after(() => store.close())
      const names = ['a.test.org', 'b.test.org', '*.test.org', 'test.org', 'x.a.test.org', 'other.org']
      const policies = [{ private_key_type: 'rsa' }, { private_key_type: 'ecdsa' }, null]
      const made = (id: string, name: string, n: number): TestRow =>
        [
          edge(id, name, names[n % names.length] ?? ''),
          certificate(id, name),
          certificate(id, name, name),
          domain(id, name, policies[n % 3] ?? null),
          ingress(id, name, policies[n % 2] ?? null),
        ][n % 5] ?? assert.fail()
      const options = { store, wildcard: '*.test.org', ownNames: ['b.test.org'], onChange: () => {} }
      const wanted = new WantedNames(options)
      await wanted.load()
      const there = new Map<string, TestRow>()
      await fc.assert(
        fc.asyncProperty(
          fc.nat(11),
          fc.constantFrom(...names),
          fc.nat(29),
          fc.boolean(),
          async (slot, name, n, isThere) => {
            const id = `r${slot}`
            const kinds = new Set<string>()
            const before = there.get(id)
            if (before) {
              kinds.add(before.kind)
              await store.write((writer) => writer.remove(id))
              there.delete(id)
            }
            if (isThere) {
              const row = made(id, name, n)
              kinds.add(row.kind)
              await storeRows(store, [row])
              there.set(id, row)
            }
            await wanted.apply([...kinds].map((kind, revision) => ({ revision, kind, id })))
            const anew = new WantedNames(options)
            await anew.load()
            for (const each of names) {
              assert.deepEqual(wanted.get(each), anew.get(each), each)
              assert.equal(wanted.isUploaded(each), anew.isUploaded(each), each)
            }
            assert.equal(wanted.size, anew.size)
          },
        ),
        { numRuns: 300 },
      )
    })
  },
  ['sqlite'],
)
