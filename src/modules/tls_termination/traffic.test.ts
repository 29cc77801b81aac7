import assert from 'node:assert/strict'
import { test } from 'node:test'
import { check } from '../../lib/shape/check.ts'
import { tlsTermination } from './form.ts'
import { compileTlsTermination } from './traffic.ts'

const lookup = { ipRules: () => assert.fail(), authority: () => assert.fail(), backend: () => assert.fail() }
function resolve(config: unknown) {
  assert.ok(tlsTermination.resolve)
  return tlsTermination.resolve(check(tlsTermination.at.tls, config), lookup, 'route')
}

test('TLS that ends at the edge serves 1.2 and up, or what is set', () => {
  const demands = [undefined, '1.0', '1.1', '1.2', '1.3'].map(
    (min_version) => compileTlsTermination(resolve({ terminate_at: 'edge', min_version })).tls,
  )
  assert.deepEqual(
    demands.map((each) => each?.minVersion),
    ['TLSv1.2', 'TLSv1', 'TLSv1.1', 'TLSv1.2', 'TLSv1.3'],
  )
})

test('TLS that ends upstream makes no demands, so that it passes through', () => {
  assert.deepEqual(compileTlsTermination(resolve({ terminate_at: 'upstream' })), {})
})

test('a certificate of the agent is used', () => {
  const certificate = { cert: 'CERT', key: 'KEY' }
  assert.deepEqual(compileTlsTermination({ terminate: 'edge', minVersion: null, certificate }).tls, {
    minVersion: 'TLSv1.2',
    certificate,
  })
})
