import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { hasKeyFile, makeKeyFile, readKeyFile, Sealer } from './seal.ts'

const folder = mkdtempSync(join(tmpdir(), 'postern-seal-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const sealer = new Sealer(Buffer.alloc(32, 1))
const MARK = `sealed:2:${sealer.keyId}:`
const HERE = 'modules/edge/oidc/client_secret'

test('a sealed text opens to the original, and does not show it', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (text) => {
      const sealed = sealer.seal(text, HERE)
      assert.equal(sealer.open(sealed, HERE), text)
      assert.ok(text.length < 4 || !Buffer.from(sealed.slice(MARK.length), 'base64').includes(text))
    }),
  )
})

test('the same text sealed twice looks different', () => {
  assert.notEqual(sealer.seal('a', HERE), sealer.seal('a', HERE))
})

test('any changed bit, and any cut, is refused', () => {
  const sealed = Buffer.from(sealer.seal('the secret', HERE).slice(MARK.length), 'base64')
  for (let bit = 0; bit < sealed.length * 8; bit++) {
    const changed = Buffer.from(sealed)
    changed.writeUInt8(changed.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3)
    assert.throws(() => sealer.open(MARK + changed.toString('base64'), HERE), `bit ${bit}`)
  }
  for (let length = 0; length < sealed.length; length++) {
    assert.throws(() => sealer.open(MARK + sealed.toString('base64', 0, length), HERE), `${length} bytes`)
  }
})

test('a shortened tag is refused, although GCM allows short ones', () => {
  const empty = Buffer.from(sealer.seal('', HERE).slice(MARK.length), 'base64')
  for (const tag of [4, 8, 12, 13, 14, 15]) {
    assert.throws(() => sealer.open(MARK + empty.toString('base64', 0, 12 + tag), HERE), `a tag of ${tag} bytes`)
  }
})

test('another key does not open it, and has another id', () => {
  const other = new Sealer(Buffer.alloc(32, 2))
  assert.throws(() => other.open(sealer.seal('a', HERE), HERE), { reason: 'other_key' })
  assert.notEqual(other.keyId, sealer.keyId)
  assert.equal(new Sealer(Buffer.alloc(32, 1)).keyId, sealer.keyId)
})

test('a value sealed for one context does not open in another', () => {
  const sealed = sealer.seal('a', HERE)
  for (const place of ['', 'modules/edge/oidc', 'modules/other/oidc/client_secret', `${HERE} `]) {
    assert.throws(() => sealer.open(sealed, place), { reason: 'changed' })
  }
})

test('a value of the first form opens only with `openFirstForm`, which opens no other form', () => {
  // Made by the first version with the same key.
  const first = 'sealed:1:BwcHBwcHBwcHBwcH7NOZwWzc1NU59WIQ0qgC6sHA86oQS2k2eU8zeZJGZCstnFsOcnQ1h1Ph'
  assert.equal(sealer.openFirstForm(first), 'a secret of the first form')
  assert.throws(() => sealer.open(first, HERE), { reason: 'not_sealed' })
  const [, , , body = ''] = sealer.seal('a', '').split(':')
  assert.throws(() => sealer.openFirstForm(`sealed:1:${body}`))
  assert.throws(() => sealer.openFirstForm(sealer.seal('a', HERE)), { reason: 'not_sealed' })
})

test('text that was never sealed is refused', () => {
  for (const text of ['', 'plain', 'sealed:1:AAAA', 'sealed:2:AAAA', MARK]) assert.throws(() => sealer.open(text, HERE))
})

test('a key of another length is refused', () => {
  for (const length of [0, 16, 31, 33]) assert.throws(() => new Sealer(Buffer.alloc(length)), /32 bytes/)
})

test('a key file is made once, is readable only by its owner, and opens what it sealed', () => {
  const path = join(folder, 'deep', 'key')
  assert.equal(hasKeyFile(path), false)
  makeKeyFile(path)
  assert.equal(hasKeyFile(path), true)
  assert.equal(statSync(path).mode & 0o777, 0o600)
  const kept = readFileSync(path, 'utf8')
  makeKeyFile(path)
  assert.equal(readFileSync(path, 'utf8'), kept)
  assert.deepEqual(readdirSync(dirname(path)), ['key'])
  assert.equal(readKeyFile(path).open(readKeyFile(path).seal('a', HERE), HERE), 'a')
})

test('the error for a damaged key file names its path and not its contents', () => {
  const path = join(folder, 'damaged')
  for (const text of ['', 'c2hvcnQ=', 'A'.repeat(100)]) {
    writeFileSync(path, text)
    assert.throws(
      () => readKeyFile(path),
      (error: Error) => error.message.includes(path) && (text === '' || !error.message.includes(text)),
    )
  }
})
