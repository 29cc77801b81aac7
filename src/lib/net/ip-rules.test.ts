import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compileIpRules, type IpRule } from './ip-rules.ts'

const allow = (network: string): IpRule => ({ action: 'allow', network })
const deny = (network: string): IpRule => ({ action: 'deny', network })

const cases: readonly [what: string, rules: readonly IpRule[], address: string, passes: boolean][] = [
  ['no rules', [], '10.0.0.1', false],
  ['an allow that matches', [allow('10.0.0.0/8')], '10.9.9.9', true],
  ['an allow that does not', [allow('10.0.0.0/8')], '11.0.0.1', false],
  ['a deny beside an allow', [allow('10.0.0.0/8'), deny('10.1.0.0/16')], '10.1.2.3', false],
  ['a deny that comes first', [deny('10.1.0.0/16'), allow('10.0.0.0/8')], '10.1.2.3', false],
  ['a deny that does not match', [allow('10.0.0.0/8'), deny('10.1.0.0/16')], '10.2.0.1', true],
  ['a deny alone', [deny('10.0.0.0/8')], '11.0.0.1', false],
  ['IPv4 mapped into IPv6', [allow('10.0.0.0/8')], '::ffff:10.0.0.1', true],
  ['IPv4 mapped, denied', [allow('0.0.0.0/0'), deny('10.0.0.1/32')], '::FFFF:10.0.0.1', false],
  ['IPv6', [allow('2001:db8::/32')], '2001:db8:ffff::1', true],
  ['IPv6 with a zone', [allow('fe80::/10')], 'fe80::1%eth0', true],
  ['all of IPv4 does not cover IPv6', [allow('0.0.0.0/0')], '::1', false],
  ['all of IPv6 does not cover IPv4', [allow('::/0')], '127.0.0.1', false],
  ['what is no address', [allow('0.0.0.0/0'), allow('::/0')], 'somewhere', false],
  ['an empty address', [allow('0.0.0.0/0'), allow('::/0')], '', false],
]

for (const [what, rules, address, passes] of cases) {
  test(`${what}: ${address || 'nothing'} ${passes ? 'passes' : 'is refused'}`, () => {
    assert.equal(compileIpRules(rules)(address), passes)
  })
}
