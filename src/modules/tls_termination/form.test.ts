import assert from 'node:assert/strict'
import { test } from 'node:test'
import { check } from '../../lib/shape/check.ts'
import { tlsTermination } from './form.ts'

function put(place: 'tls' | 'https', body: unknown, at = ''): unknown {
  const form = tlsTermination.at[place]
  assert.ok(form && tlsTermination.accept)
  return tlsTermination.accept(check(form, body), { place, at })
}

test('fills in what the caller leaves out', () => {
  assert.deepEqual(put('tls', {}), { enabled: true, terminate_at: 'edge' })
  assert.deepEqual(put('https', { terminate_at: 'edge' }), { enabled: true, terminate_at: 'edge' })
})

test('an empty or null min_version is unset', () => {
  for (const min_version of ['', null]) {
    assert.deepEqual(put('tls', { min_version }), { enabled: true, terminate_at: 'edge' })
    assert.deepEqual(put('tls', { min_version, terminate_at: 'upstream' }), { enabled: true, terminate_at: 'upstream' })
  }
})

test('accepts the four TLS versions and no other', () => {
  for (const min_version of ['1.0', '1.1', '1.2', '1.3']) {
    assert.deepEqual(put('https', { min_version }), { enabled: true, terminate_at: 'edge', min_version })
  }
  for (const min_version of ['1.4', '1', 'TLSv1.2', 1.2]) {
    assert.throws(() => put('tls', { min_version }), { field: 'min_version', kind: 'value' })
  }
})

test('refuses other values of terminate_at', () => {
  for (const terminate_at of ['', 'agent', 'Edge']) {
    assert.throws(() => put('tls', { terminate_at }), { field: 'terminate_at', kind: 'value' })
  }
  assert.throws(() => put('https', { terminate_at: 'upstream' }), { field: 'terminate_at', kind: 'value' })
})

test('refuses min_version when TLS ends upstream, on a disabled module too', () => {
  for (const enabled of [true, false]) {
    assert.throws(() => put('tls', { enabled, terminate_at: 'upstream', min_version: '1.2' }, 'tls_termination.'), {
      code: 'MIN_VERSION_NOT_ALLOWED',
      message: /`tls_termination\.min_version` must be null/,
    })
  }
})
