import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { derElements, derOnly, dottedOid } from './der.ts'
import {
  der,
  derBits,
  derBoolean,
  derInteger,
  derNamedBits,
  derOctets,
  derOid,
  derSequence,
  derTime,
  derToPem,
  derUtf8,
} from './der-writer.ts'
import { decodeBase64 } from './pem.ts'

const cases: [name: string, made: Buffer, hex: string][] = [
  ['zero', derInteger(Buffer.alloc(0)), '020100'],
  ['zero of many bytes', derInteger(Buffer.alloc(3)), '020100'],
  ['a number with zeros in front', derInteger(Buffer.from([0, 0, 5])), '020105'],
  ['a number whose highest bit is set', derInteger(Buffer.from([0x80])), '02020080'],
  ['the identifier of rsaEncryption', derOid('1.2.840.113549.1.1.1'), '06092a864886f70d010101'],
  ['an identifier of a low arc', derOid('2.5.29.17'), '0603551d11'],
  ['true', derBoolean(true), '0101ff'],
  ['false', derBoolean(false), '010100'],
  ['text', derUtf8('ä'), '0c02c3a4'],
  ['bits', derBits(Buffer.from([1, 2])), '0303000102'],
  ['the named bits of an authority', derNamedBits([5, 6]), '03020106'],
  ['the first named bit', derNamedBits([0]), '03020780'],
  ['a named bit of the second byte', derNamedBits([8]), '0303070080'],
  ['octets', derOctets(Buffer.from([1])), '040101'],
  ['an empty sequence', derSequence(), '3000'],
  ['a sequence', derSequence(derBoolean(true), derOctets(Buffer.alloc(0))), '30050101ff0400'],
  ['a time before 2050', derTime(Date.UTC(2049, 11, 31, 23, 59, 59, 999)), '170d3439313233313233353935395a'],
  ['a time from 2050 on', derTime(Date.UTC(2050, 0, 1)), '180f32303530303130313030303030305a'],
]
for (const [name, made, hex] of cases) {
  test(`writes ${name}`, () => assert.equal(made.toString('hex'), hex))
}

test('the strict reader reads what it writes, at every length of a length', () => {
  for (const length of [0, 1, 127, 128, 255, 256, 65_535, 65_536, 1 << 20]) {
    assert.equal(derOnly(der(0x04, Buffer.alloc(length)), 0x04).length, length)
  }
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 5 }), (parts) => {
      const bodies = parts.map((part) => Buffer.from(part))
      const read = derElements(derOnly(derSequence(...bodies.map(derOctets)), 0x30))
      assert.deepEqual(
        read.map(({ body }) => Buffer.from(body)),
        bodies,
      )
    }),
  )
})

test('identifiers read back unchanged', () => {
  const arc = fc.nat({ max: 2 ** 31 - 1 })
  fc.assert(
    fc.property(fc.constantFrom('0.9', '1.2', '2.5', '2.100'), fc.array(arc, { maxLength: 8 }), (root, arcs) => {
      const dotted = [root, ...arcs].join('.')
      assert.equal(dottedOid(derOnly(derOid(dotted), 0x06)), dotted)
    }),
  )
})

test('PEM has lines of 64 characters and no empty line', () => {
  for (const size of [1, 47, 48, 49, 96, 1000]) {
    const bytes = Buffer.alloc(size, 7)
    const lines = derToPem('THING', bytes).split('\n')
    assert.deepEqual([lines[0], lines.at(-2), lines.at(-1)], ['-----BEGIN THING-----', '-----END THING-----', ''])
    const body = lines.slice(1, -2)
    assert.ok(body.every((line, i) => (i < body.length - 1 ? line.length === 64 : line.length > 0)))
    assert.deepEqual(decodeBase64(body.join('')), bytes)
  }
})
