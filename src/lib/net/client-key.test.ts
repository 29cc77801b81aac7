import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clientKeyOf } from './client-key.ts'

const cases: readonly [ip: string, source: string][] = [
  ['192.0.2.1', '192.0.2.1'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['2001:db8::1', '2001:db8:0:0'],
  ['2001:db8:0:0:ffff::2', '2001:db8:0:0'],
  ['2001:db8:0:0:1:2:3:4', '2001:db8:0:0'],
  ['2001:db8:0:1::3', '2001:db8:0:1'],
  ['fe80::1%eth0', 'fe80:0:0:0'],
  ['::1', '0:0:0:0'],
]

for (const [ip, source] of cases) {
  test(`${ip} counts as ${source}`, () => assert.equal(clientKeyOf(ip), source))
}
