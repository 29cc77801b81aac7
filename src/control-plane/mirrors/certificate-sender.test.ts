import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { UploadedCertificates } from '../../data-plane/mirrored/uploaded-certificates.ts'
import type { CertificateChange, ServedCertificate } from '../../link/planes/plane-calls.ts'
import { certificateSender } from './plane-mirrors.ts'

const names = ['a.example.com', 'b.example.com', '*.example.com', 'c.example.com']
const ids = ['cert_1', 'cert_2', 'cert_3']
const certificate = (id: string, version: number): ServedCertificate => ({
  id,
  cert: `${id} ${version}`,
  key: `key ${version}`,
  notAfter: '2030-01-01T00:00:00Z',
})

/** A feed, and what arrives at a plane: copies, as over any channel. */
function fed() {
  let replaced: ReadonlyMap<string, ServedCertificate> = new Map()
  const sent: CertificateChange[] = []
  const uploaded = new UploadedCertificates((served) => {
    replaced = served
  })
  const send = certificateSender(async (change) => {
    sent.push(change)
    uploaded.take(structuredClone(change))
  })
  /** Sends all names as changed. */
  const replace = (served: ReadonlyMap<string, ServedCertificate>): void =>
    void send(served, new Set([...served.keys(), ...replaced.keys()]))
  return { replace, sent, at: () => new Map(replaced) }
}

/** The certificate of each name, if any; certificates that are renewed; whether a plane attaches again. */
const step = fc.record({
  shown: fc.array(fc.option(fc.constantFrom(...ids)), { minLength: names.length, maxLength: names.length }),
  renewed: fc.subarray(ids),
})

test('after any series of changes a plane shows what the control plane does', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 15 }), (steps) => {
      const plane = fed()
      let current = new Map(ids.map((id) => [id, certificate(id, 0)]))
      for (const [version, { shown, renewed }] of steps.entries()) {
        current = new Map(current)
        for (const id of renewed) current.set(id, certificate(id, version + 1))
        const served = new Map(
          names.flatMap((name, i) => {
            const found = current.get(shown[i] ?? '')
            return found ? [[name, found] as const] : []
          }),
        )
        const before = plane.at()
        plane.replace(served)
        const after = plane.at()
        const sorted = (all: ReadonlyMap<string, ServedCertificate>) => [...all].sort(([a], [b]) => (a < b ? -1 : 1))
        assert.deepEqual(sorted(after), sorted(served))
        // Unchanged certificates are the same objects, for which TLS contexts were made.
        for (const [name, each] of after) {
          const same = [...before.values()].find(({ id, cert }) => id === each.id && cert === each.cert)
          assert.ok(!same || same === each, name)
        }
      }
    }),
  )
})

test('only what changed is sent', () => {
  const { replace, sent } = fed()
  const [one, two] = [certificate('cert_1', 0), certificate('cert_2', 0)]
  replace(new Map([['a', one]]))
  replace(
    new Map([
      ['a', one],
      ['b', two],
      ['c', one],
    ]),
  )
  replace(new Map([['d', one]]))
  replace(new Map([['d', one]]))
  assert.deepEqual(sent, [
    { isAll: true, certificates: [one], names: [['a', 'cert_1']], removedNames: [] },
    {
      isAll: false,
      certificates: [two],
      names: [
        ['b', 'cert_2'],
        ['c', 'cert_1'],
      ],
      removedNames: [],
    },
    { isAll: false, certificates: [], names: [['d', 'cert_1']], removedNames: ['a', 'b', 'c'] },
    { isAll: false, certificates: [], names: [], removedNames: [] },
  ])
})

test('a plane that is sent the state of another control plane forgets that of the former', async () => {
  let replaced: ReadonlyMap<string, ServedCertificate> = new Map()
  const uploaded = new UploadedCertificates((served) => {
    replaced = served
  })
  await certificateSender(async (change) => uploaded.take(change))(new Map([['old', certificate('cert_1', 0)]]), [
    'old',
  ])
  await certificateSender(async (change) => uploaded.take(change))(new Map([['new', certificate('cert_1', 1)]]), [
    'new',
  ])
  assert.deepEqual([...replaced], [['new', certificate('cert_1', 1)]])
})
