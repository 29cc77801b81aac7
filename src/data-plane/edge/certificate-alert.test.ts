import assert from 'node:assert/strict'
import { createDecipheriv, createHmac } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import type { ConnectionOptions } from 'node:tls'
import { Authority, createAuthority } from '../../lib/x509/certificate-authority.ts'
import { sealedAlert } from './certificate-alert.ts'
import { Front, tlsEdge } from './testing/test-front.ts'

describe('a client certificate that is not trusted is refused with an alert', () => {
  let front: Front
  let stranger: { cert: string; key: string }
  before(async () => {
    const trusted = createAuthority()
    const other = createAuthority()
    stranger = new Authority(other.certPem, other.keyPem).issue(['stranger.test'])
    const edges = { 'm.test': tlsEdge('m', { minVersion: 'TLSv1', clientAuthorities: [trusted.certPem] }) }
    front = await new Front({ edges }).start()
  })
  after(() => front.stop())

  const cases: Record<string, ConnectionOptions> = {
    'over TLS 1.0': { minVersion: 'TLSv1', maxVersion: 'TLSv1', ciphers: 'DEFAULT@SECLEVEL=0' },
    'over TLS 1.1': { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' },
    'over TLS 1.2': { maxVersion: 'TLSv1.2' },
    'over TLS 1.3 and AES-128-GCM': { ciphers: 'TLS_AES_128_GCM_SHA256' },
    'over TLS 1.3 and AES-256-GCM': { ciphers: 'TLS_AES_256_GCM_SHA384' },
    'over TLS 1.3 and ChaCha20-Poly1305': { ciphers: 'TLS_CHACHA20_POLY1305_SHA256' },
  }
  for (const [name, options] of Object.entries(cases)) {
    test(name, async () => {
      assert.match(await front.refusal('m.test', { ...stranger, ...options }), /alert bad certificate/i)
      assert.equal((await front.fault()).fault, 'client_certificate')
    })
  }

  test('and a client without one gets the alert that one is required', async () => {
    assert.match(await front.refusal('m.test'), /alert certificate required/i)
    assert.equal((await front.fault()).fault, 'client_certificate')
  })
})

test('the alert of TLS 1.3 is the first record under the secret, and there is none for an unknown suite', () => {
  const secret = Buffer.alloc(32, 7)
  const record = sealedAlert(secret, 'TLS_AES_128_GCM_SHA256')
  assert.ok(record)
  // HKDF-Expand-Label of RFC 8446 §7.1, spelled out.
  const expand = (info: string, bytes: number) =>
    createHmac('sha256', secret).update(Buffer.from(info, 'latin1')).digest().subarray(0, bytes)
  const key = expand('\0\x10\x09tls13 key\0\x01', 16)
  const open = createDecipheriv('aes-128-gcm', key, expand('\0\x0c\x08tls13 iv\0\x01', 12))
  open.setAAD(record.subarray(0, 5)).setAuthTag(record.subarray(-16))
  const inner = Buffer.concat([open.update(record.subarray(5, -16)), open.final()])
  assert.deepEqual([...inner], [2, 42, 21])
  assert.equal(sealedAlert(secret, 'TLS_AES_128_CCM_SHA256'), undefined)
})
