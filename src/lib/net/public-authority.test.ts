import assert from 'node:assert/strict'
import { test } from 'node:test'
import { publicAuthority } from './public-authority.ts'

const cases = [
  ['http', 80, 'a.test'],
  ['https', 443, 'a.test'],
  ['tls', 443, 'a.test'],
  ['http', 443, 'a.test:443'],
  ['https', 8443, 'a.test:8443'],
  ['tcp', 443, 'a.test:443'],
] as const

for (const [scheme, port, authority] of cases) {
  test(`${scheme} at port ${port}`, () => assert.equal(publicAuthority(scheme, 'a.test', port), authority))
}
