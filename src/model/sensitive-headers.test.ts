import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isSecretName } from '../lib/log/log-mask.ts'
import { isSensitiveHeader } from './sensitive-headers.ts'

// Those of the audit, and one for each word (D123).
const secret = [
  'Cf-Access-Jwt-Assertion',
  'X-Pomerium-Jwt-Assertion',
  'Ocp-Apim-Subscription-Key',
  'X-Functions-Key',
  'X-Session-Id',
  'X-Auth',
  'X-JWT',
  'X-Auth-Request-User',
  'X-Amz-Security-Token',
  'X-Token-Id',
  'X-Client-Secret-Hash',
  'Proxy-Authorization',
  'X-Authorization-Data',
  'X-Password-Old',
  'X-Credential-Id',
  'X-ApiKey-Id',
  'X-Api-Key-Id',
  'X-Api_Key-Id',
  'X.Auth-Data',
]
const alone = ['JWT', 'Session', 'Auth', 'Key', 'Token', 'Apikey']
const identities = [
  'DPoP',
  'Remote-User',
  'Remote-Groups',
  'Tailscale-User-Login',
  'Sec-WebSocket-Protocol',
  'Cookie2',
  'Postern-Auth-User-Email',
]
const plain = [
  'Idempotency-Key',
  'Sec-WebSocket-Key',
  'Surrogate-Key',
  'X-RateLimit-Remaining',
  'RateLimit-Policy',
  'X-Rate-Limit-Key',
  'Author',
  'X-Authority',
  'X-Sessions',
  'X-Keyboard',
  'Key-Id',
  'Remote-Addr',
  'WWW-Authenticate',
]

test('headers that hold secrets or say who somebody is are masked in captures, and others are not', () => {
  for (const name of [...secret, ...alone, ...identities]) {
    for (const each of [name, name.toLowerCase(), name.toUpperCase()]) assert.ok(isSensitiveHeader(each), each)
  }
  for (const name of plain) assert.ok(!isSensitiveHeader(name), name)
})

test('the log masks the same secret headers, and none of its own fields', () => {
  for (const name of secret) assert.ok(isSecretName(name), name)
  for (const name of [...plain, 'session', 'key', 'auth', 'sessionId', 'session_id', 'credential']) {
    assert.ok(!isSecretName(name), name)
  }
})
