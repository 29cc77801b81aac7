import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type HeaderName, headerName, mixCode, nameIn } from './header-name.ts'

function hashOf(spelling: string): number {
  let hash = 0
  for (const byte of Buffer.from(spelling, 'latin1')) hash = mixCode(hash, byte)
  return hash
}

function read(spelling: string): HeaderName {
  const bytes = Buffer.from(`: ${spelling}: `, 'latin1')
  return nameIn(bytes, 2, 2 + spelling.length, hashOf(spelling))
}

describe('the name of a header', () => {
  test('has its spelling, its key, and whether it can be sent', () => {
    const { spelling, key, isToken, lineStart } = headerName('X-Real-IP')
    assert.deepEqual(
      { spelling, key, isToken, lineStart },
      {
        spelling: 'X-Real-IP',
        key: 'x-real-ip',
        isToken: true,
        lineStart: '\r\nX-Real-IP: ',
      },
    )
    for (const name of ['', 'a b', 'a:b', 'a\r\nb', 'a\u010d\u010ab', '\xe9', '\u20ac']) {
      assert.deepEqual([headerName(name).spelling, headerName(name).isToken], [name, false])
    }
  })

  test('is the same object for the same spelling, from text or bytes, and a different one for another spelling', () => {
    assert.equal(headerName('Accept'), headerName('Accept'))
    assert.equal(read('Accept'), headerName('Accept'))
    assert.notEqual(headerName('accept'), headerName('Accept'))
    assert.equal(headerName('accept').key, headerName('Accept').key)
  })

  test('is never that of another spelling, even if two have the same hash', () => {
    // 31 * 'B' + 'b' is 31 * 'C' + 'C'.
    assert.equal(hashOf('x-Bb'), hashOf('x-CC'))
    for (const spelling of ['x-Bb', 'x-CC', 'x-Bb', 'x-CC']) {
      assert.equal(read(spelling).spelling, spelling)
      assert.equal(headerName(spelling).spelling, spelling)
    }
  })

  test('stays right when there are more names than the cache holds', () => {
    const spellings = Array.from({ length: 5000 }, (_, i) => `x-${i}-${'y'.repeat(i % 60)}`)
    for (const spelling of [...spellings, ...spellings]) {
      assert.deepEqual([read(spelling).spelling, headerName(spelling).key], [spelling, spelling])
    }
  })

  test('may be spelled like a built-in property, or like a number', () => {
    for (const name of ['__proto__', 'constructor', 'toString', '0', '42']) {
      assert.equal(headerName(name).key, name.toLowerCase())
    }
  })

  test('that is not a token is not confused with one that was read', () => {
    // Read as bytes, U+0141 would be an A.
    const made = headerName('\u0141ccept-made-up')
    assert.notEqual(read('Accept-made-up'), made)
    assert.equal(made.isToken, false)
  })
})
