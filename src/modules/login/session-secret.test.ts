import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { Sealer } from '../../lib/secrets/seal.ts'
import { secretForm, sessionSecrets } from './session-secret.ts'

const host = 'app.example.com'
const { make, isOurs } = sessionSecrets(new Sealer(randomBytes(32)))

test('a secret of ours is known by its checksum, at its own host alone', () => {
  const secret = make(host)
  assert.match(secret, secretForm)
  assert.notEqual(secret, make(host))
  assert.equal(isOurs({ secret, host }), true)
  assert.equal(isOurs({ secret, host: 'other.example.com' }), false)
})

test('what somebody made up, changed, or got from another server is not ours', () => {
  const secret = make(host)
  const changed = (at: number) => secret.slice(0, at) + (secret[at] === 'A' ? 'B' : 'A') + secret.slice(at + 1)
  for (const made of [
    randomBytes(32).toString('base64url'),
    changed(0),
    changed(42),
    secret.slice(0, 42),
    `${secret}A`,
    '',
    sessionSecrets(new Sealer(randomBytes(32))).make(host),
  ]) {
    assert.equal(isOurs({ secret: made, host }), false, made)
  }
})
