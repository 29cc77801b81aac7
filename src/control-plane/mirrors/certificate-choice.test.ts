import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { ServedCertificate } from '../../link/planes/plane-calls.ts'
import { coveredBy } from '../../model/certificate-names.ts'
import { CertificateChoice, type NamingDomain, type StoredCertificate } from './certificate-choice.ts'

const names = ['a.test', 'b.test', '*.test', 'x.a.test', '*.a.test', 'localhost']
const ids = ['cert_1', 'cert_2', 'cert_3', 'cert_4']

const served = (id: string): ServedCertificate => ({ id, cert: id, key: 'key', notAfter: '2030-01-01T00:00:00Z' })

const step = fc.oneof(
  fc.record({
    type: fc.constant('certificate' as const),
    id: fc.constantFrom(...ids),
    names: fc.subarray(names),
    isIssued: fc.boolean(),
    isThere: fc.boolean(),
  }),
  fc.record({
    type: fc.constant('domain' as const),
    name: fc.constantFrom(...names),
    certificateId: fc.constantFrom(...ids),
    isThere: fc.boolean(),
  }),
  fc.record({ type: fc.constant('files' as const), names: fc.subarray(names) }),
)

/** The expected choice, computed from all certificates as the rules are written. */
function chosenAnew(
  certificates: readonly StoredCertificate[],
  domains: readonly NamingDomain[],
  files: ReadonlyMap<string, ServedCertificate>,
): Map<string, ServedCertificate> {
  const byAge = certificates.toSorted((a, b) => (a.served.id < b.served.id ? -1 : 1))
  const named = (isIssued: boolean) =>
    byAge
      .filter((each) => each.isIssued === isIssued)
      .flatMap((each) => each.names.map((name) => [name, each.served] as const))
  const all = new Map<string, ServedCertificate>()
  for (const rank of [named(false), files, named(true)]) {
    const isCovered = coveredBy(new Set(all.keys()))
    for (const [name, each] of rank) if (!isCovered(name)) all.set(name, each)
  }
  for (const { name, certificateId } of domains) {
    const found = certificates.find((each) => each.served.id === certificateId)
    if (found) all.set(name, found.served)
  }
  return all
}

test('after any series of changes each name has the certificate that the rules give it, and the changes are reported', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const choice = new CertificateChoice()
      const certificates = new Map<string, StoredCertificate>()
      const domains = new Map<string, NamingDomain>()
      let files = new Map<string, ServedCertificate>()
      let reported = new Map<string, ServedCertificate>()
      for (const [i, each] of steps.entries()) {
        if (each.type === 'files') {
          files = new Map(each.names.map((name) => [name, served(`file ${name} ${i}`)]))
          choice.useFiles(files)
        } else if (each.type === 'domain') {
          const before = domains.get(each.name)
          if (before) choice.put('delete', before)
          domains.delete(each.name)
          if (each.isThere) {
            domains.set(each.name, each)
            choice.put('add', each)
          }
        } else {
          const before = certificates.get(each.id)
          if (before) choice.put('delete', before)
          certificates.delete(each.id)
          if (each.isThere) {
            const made = { names: each.names, isIssued: each.isIssued, served: served(each.id) }
            certificates.set(each.id, made)
            choice.put('add', made)
          }
        }
        const changed = choice.settle()
        const expected = chosenAnew([...certificates.values()], [...domains.values()], files)
        assert.deepEqual(new Map(choice.served), expected)
        const isOther = (name: string) => reported.get(name) !== choice.served.get(name)
        assert.deepEqual(changed.sort(), names.filter(isOther).sort())
        reported = new Map(choice.served)
      }
    }),
    { numRuns: 500 },
  )
})
