import assert from 'node:assert/strict'
import { BlockList, isIP } from 'node:net'
import { test } from 'node:test'
import fc from 'fast-check'
import { readCidr } from './cidr.ts'

const accepted: [text: string, canonical: string, family: 4 | 6, bits: number][] = [
  ['0.0.0.0/0', '0.0.0.0/0', 4, 0],
  ['10.0.0.0/8', '10.0.0.0/8', 4, 8],
  ['192.0.2.128/25', '192.0.2.128/25', 4, 25],
  ['255.255.255.255/32', '255.255.255.255/32', 4, 32],
  ['::/0', '::/0', 6, 0],
  ['2001:DB8::/32', '2001:db8::/32', 6, 32],
  ['2001:0db8:0000:0000:0000:0000:0000:0001/128', '2001:db8::1/128', 6, 128],
  ['2001:db8:0:0:1:0:0:1/128', '2001:db8::1:0:0:1/128', 6, 128],
  ['2001:0:0:1::/64', '2001:0:0:1::/64', 6, 64],
  ['2001:db8:1:1:1:1:0:1/128', '2001:db8:1:1:1:1:0:1/128', 6, 128],
  ['::1.2.3.4/128', '::102:304/128', 6, 128],
  ['64:ff9b::192.0.2.0/120', '64:ff9b::c000:200/120', 6, 120],
  ['8000::/1', '8000::/1', 6, 1],
]

for (const [text, canonical, family, bits] of accepted) {
  test(`reads ${text} as ${canonical}`, () => {
    const network = canonical.slice(0, canonical.indexOf('/'))
    assert.deepEqual(readCidr(text), { network, bits, family, canonical })
  })
}

const generic = /A network is an IPv4 or IPv6 address with a mask/
const refused: [text: string, message: RegExp][] = [
  ['', generic],
  ['everyone', generic],
  ['example.com/24', generic],
  [' 10.0.0.0/8', generic],
  ['10.0.0.0 /8', generic],
  ['10.0.0/8', generic],
  ['010.1.1.1/32', generic],
  ['10.01.1.0/24', generic],
  ['256.0.0.0/8', generic],
  ['[2001:db8::]/32', generic],
  ['2001:db8:::/32', generic],
  [`${'0'.repeat(5000)}/8`, generic],
  ['10.0.0.1', /`10\.0\.0\.1` has no mask; write `10\.0\.0\.1\/32`/],
  ['2001:DB8::1', /write `2001:db8::1\/128`/],
  ['::ffff:10.0.0.1', /write `10\.0\.0\.1\/32`/],
  ['10.0.0.0/', /from 0 to 32/],
  ['10.0.0.0/33', /from 0 to 32/],
  ['10.0.0.0/08', /from 0 to 32/],
  ['10.0.0.0/-1', /from 0 to 32/],
  ['10.0.0.0/8/8', /from 0 to 32/],
  ['10.0.0.0/255.0.0.0', /from 0 to 32/],
  ['2001:db8::/129', /from 0 to 128/],
  ['10.1.2.3/8', /write `10\.0\.0\.0\/8`, or `\/32` for one address/],
  ['10.0.0.1/0', /write `0\.0\.0\.0\/0`/],
  ['2001:db8::1/32', /write `2001:db8::\/32`, or `\/128` for one address/],
  ['::ffff:10.0.0.0/104', /write it as `10\.0\.0\.0\/8`/],
  ['::ffff:a00:1/104', /write it as `10\.0\.0\.0\/8`/],
  ['::ffff:0:0/96', /write it as `0\.0\.0\.0\/0`/],
  ['fe80::1%eth0/64', /cannot have a zone/],
  ['fe80::%1', /cannot have a zone/],
]

for (const [text, message] of refused) {
  test(`refuses ${JSON.stringify(text.slice(0, 40))}`, () => {
    assert.throws(() => readCidr(text), { name: 'BadInput', message })
  })
}

test('any text gives a network whose canonical form reads back the same, or an Error with a message', () => {
  const address = fc.oneof(fc.ipV4(), fc.ipV6(), fc.string({ maxLength: 20 }))
  const text = fc.oneof(
    fc.string(),
    fc.tuple(address, fc.integer({ min: -1, max: 130 })).map(([host, bits]) => `${host}/${bits}`),
  )
  fc.assert(
    fc.property(text, (given) => {
      try {
        const cidr = readCidr(given)
        assert.deepEqual(readCidr(cidr.canonical), cidr)
      } catch (error) {
        assert.ok(error instanceof Error && error.name === 'BadInput' && error.message.length > 10, String(error))
      }
    }),
  )
})

test('the network suggested for any address contains the address', () => {
  const ipv4 = fc.tuple(fc.ipV4(), fc.integer({ min: 0, max: 32 }))
  const ipv6 = fc.tuple(fc.ipV6(), fc.integer({ min: 0, max: 128 }))
  fc.assert(
    fc.property(fc.oneof(ipv4, ipv6), ([address, bits]) => {
      const { network, bits: size, family } = readCidr(suggestion(`${address}/${bits}`))
      // BlockList is another implementation of the same arithmetic; both treat IPv4-mapped addresses as IPv4.
      const range = new BlockList()
      range.addSubnet(network, size, family === 4 ? 'ipv4' : 'ipv6')
      assert.ok(range.check(address, isIP(address) === 4 ? 'ipv4' : 'ipv6'), `${network}/${size} lacks ${address}`)
    }),
  )
})

function suggestion(text: string): string {
  try {
    return readCidr(text).canonical
  } catch (error) {
    return /write (?:it as )?`([^`]+)`/.exec(String(error))?.[1] ?? ''
  }
}
