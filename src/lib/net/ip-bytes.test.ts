import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { asIPv6, ipBytes, ipText } from './ip-bytes.ts'

describe('an address', () => {
  const cases: [text: string, hex: string, again?: string][] = [
    ['0.0.0.0', '00000000'],
    ['192.0.2.255', 'c00002ff'],
    ['::', '00000000000000000000000000000000'],
    ['::1', '00000000000000000000000000000001'],
    ['2001:db8::8:800:200c:417a', '20010db80000000000080800200c417a'],
    ['2001:db8:1:2:3:4:5:6', '20010db8000100020003000400050006'],
    ['fe80::', 'fe800000000000000000000000000000'],
    ['FE80::1%eth0', 'fe800000000000000000000000000001', 'fe80::1'],
    ['::ffff:192.0.2.1', '00000000000000000000ffffc0000201', '192.0.2.1'],
    ['64:ff9b::192.0.2.33', '0064ff9b0000000000000000c0000221', '64:ff9b::c000:221'],
  ]
  for (const [text, hex, again = text] of cases) {
    test(`${text} is converted to bytes and back`, () => {
      const bytes = ipBytes(text)
      assert.equal(bytes?.toString('hex'), hex)
      assert.equal(ipText(Buffer.from(hex, 'hex')), again)
    })
  }

  for (const text of ['', '1.2.3', '01.2.3.4', 'localhost', ':::', '1::2::3', '2001:db8', '1.2.3.4:80']) {
    test(`is not ${JSON.stringify(text)}`, () => assert.equal(ipBytes(text), undefined))
  }

  test('of IPv4 has an IPv4-mapped form', () => {
    assert.equal(asIPv6(Buffer.from([192, 0, 2, 1])).toString('hex'), '00000000000000000000ffffc0000201')
    assert.equal(asIPv6(Buffer.alloc(16, 1)).toString('hex'), '01'.repeat(16))
  })
})
