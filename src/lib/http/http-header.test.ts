import assert from 'node:assert/strict'
import { validateHeaderName, validateHeaderValue } from 'node:http'
import { test } from 'node:test'
import fc from 'fast-check'
import { isConnectionHeader, isHeaderName, isHeaderValue, toHeaderValue } from './http-header.ts'

const names: [name: string, isName: boolean][] = [
  ['x-request-id', true],
  ["!#$%&'*+-.^_`|~09azAZ", true],
  ['', false],
  ['two words', false],
  ['colon:', false],
  ['line\n', false],
  ['tab\t', false],
  ['nul\0', false],
  ['(comment)', false],
  ['größe', false],
  ['ｘ', false],
]

for (const [name, isName] of names) {
  test(`${JSON.stringify(name)} ${isName ? 'is' : 'is not'} a header name`, () => {
    assert.equal(isHeaderName(name), isName)
  })
}

test('Node accepts every name that passes', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 5 }), (name) => {
      if (isHeaderName(name)) validateHeaderName(name)
      else assert.throws(() => validateHeaderName(name))
    }),
    { numRuns: 2000 },
  )
})

const values: [value: string, isValue: boolean][] = [
  ['', true],
  ['plain text, with "quotes"', true],
  ['a\ttab', true],
  ['a\rb', false],
  ['a\nb', false],
  ['a\r\nset-cookie: x=1', false],
  ['a\0b', false],
  ['a\x7fb', false],
  ['a\x1bb', false],
  ['a\x85b', false],
]

for (const [value, isValue] of values) {
  test(`${JSON.stringify(value)} ${isValue ? 'is' : 'is not'} a header value`, () => {
    assert.equal(isHeaderValue(value), isValue)
  })
}

test('Node accepts every value of one-byte characters that passes', () => {
  const latin1 = fc.array(fc.nat(255), { maxLength: 6 }).map((codes) => String.fromCharCode(...codes))
  fc.assert(
    fc.property(latin1, (value) => {
      if (isHeaderValue(value)) validateHeaderValue('x', value)
    }),
    { numRuns: 2000 },
  )
})

const connection: [name: string, isOne: boolean][] = [
  ['connection', true],
  ['Content-Length', true],
  ['TRANSFER-ENCODING', true],
  ['Keep-Alive', true],
  ['TE', true],
  ['trailer', true],
  ['upgrade', true],
  ['expect', true],
  ['proxy-authorization', true],
  ['Proxy-Connection', true],
  ['content-type', false],
  ['host', false],
  ['x-proxy', false],
  ['te-x', false],
]

for (const [name, isOne] of connection) {
  test(`\`${name}\` ${isOne ? 'belongs' : 'does not belong'} to the connection`, () => {
    assert.equal(isConnectionHeader(name), isOne)
  })
}

test('text becomes a value whose bytes can all be sent', () => {
  assert.equal(toHeaderValue('plain\ttext'), 'plain\ttext')
  assert.equal(toHeaderValue('a\r\nb\0c\x7fd\x85e'), 'abcde')
  // Cut to their low bytes, these two characters would be a line break.
  const value = toHeaderValue('\u010d\u010a')
  assert.match(value, /^[\x80-\xff]+$/)
  assert.equal(Buffer.from(value, 'latin1').toString('utf8'), '\u010d\u010a')
})
