import assert from 'node:assert/strict'
import { test } from 'node:test'
import { check } from '../../lib/shape/check.ts'
import type { ModuleConfig } from '../module.ts'
import { oidc } from './form.ts'

function put(body: unknown, at = ''): ModuleConfig {
  assert.ok(oidc.at.route && oidc.accept)
  return oidc.accept(check(oidc.at.route, body), { place: 'route', at })
}

const complete = { issuer: 'https://id.example.com', client_id: 'app', client_secret: 'hush-hush' }

test('shows every field, with defaults for omitted ones', () => {
  assert.deepEqual(put(complete), {
    enabled: true,
    options_passthrough: false,
    cookie_prefix: '',
    inactivity_timeout: 0,
    maximum_duration: 0,
    ...complete,
    scopes: [],
  })
})

test('an enabled module is refused with the names of missing fields; a disabled one may lack them', () => {
  assert.equal(put({ enabled: false }).issuer, '')
  assert.throws(() => put({}, 'oidc.'), {
    field: 'oidc.issuer',
    kind: 'required',
    message: /`oidc\.issuer`, `oidc\.client_id`, `oidc\.client_secret`/,
  })
  assert.throws(() => put({ ...complete, client_secret: '' }), { field: 'client_secret', kind: 'required' })
})

test('accepts an issuer over https, or over http on loopback', () => {
  const issuers = [
    'https://id.example.com/realms/main/',
    'https://id.example.com:8443',
    'https://id.example.com/@tenant',
    'HTTPS://id.example.com',
    'http://localhost:4000',
    'http://127.0.0.1',
    'http://127.8.9.1:1/x',
    'http://[::1]:4000/oidc',
  ]
  for (const issuer of issuers) assert.equal(put({ ...complete, issuer }).issuer, issuer)
})

test('refuses every other issuer, on a disabled module too', () => {
  const issuers = [
    'http://id.example.com',
    'http://127.0.0.1.example.com',
    'http://127.example.com',
    'http://localhost.example.com',
    'http://[::2]',
    'https://id.example.com?tenant=1',
    'https://id.example.com?',
    'https://id.example.com/#top',
    'https://user:pass@id.example.com',
    'https://@id.example.com',
    'id.example.com',
    'https:id.example.com',
    'https://',
    'https://id.example.com/a b',
    ' https://id.example.com',
    'https://id.example.com\\x',
    'https://id.example.com:99999',
    'ftp://id.example.com',
    'ftp://localhost',
  ]
  for (const issuer of issuers) {
    for (const enabled of [true, false]) {
      assert.throws(() => put({ ...complete, enabled, issuer }), { field: 'issuer', kind: 'value' }, issuer)
    }
  }
  assert.throws(() => put({ ...complete, issuer: `https://${'a'.repeat(248)}` }), { kind: 'too_long' })
})

test('never repeats a secret in a message', () => {
  const bodies = [
    { ...complete, client_id: '' },
    { ...complete, issuer: 'https://u:hush-hush@id.example.com' },
  ]
  for (const body of bodies) {
    assert.throws(
      () => put(body),
      (error: Error) => !error.message.includes('hush-hush'),
    )
  }
})

test('a scope is one RFC 6749 token', () => {
  const scopes = ['openid', 'https://example.com/auth/read.only', 'a:b']
  assert.deepEqual(put({ ...complete, scopes }).scopes, scopes)
  for (const scope of ['', 'openid profile', 'a"b', 'a\\b', 'é', 'a\n']) {
    assert.throws(() => put({ ...complete, scopes: ['openid', scope] }), { field: 'scopes[1]', kind: 'value' }, scope)
  }
  assert.throws(() => put({ ...complete, scopes: Array(31).fill('s') }), { field: 'scopes', kind: 'value' })
})

test('keeps times and the cookie prefix within bounds', () => {
  assert.equal(put({ ...complete, inactivity_timeout: 4_294_967_295 }).inactivity_timeout, 4_294_967_295)
  assert.equal(put({ ...complete, maximum_duration: 4_294_967_295 }).maximum_duration, 4_294_967_295)
  assert.equal(put({ ...complete, cookie_prefix: 'my.App2.' }).cookie_prefix, 'my.App2.')
  const wrong = [
    { inactivity_timeout: 4_294_967_296 },
    { inactivity_timeout: -1 },
    { maximum_duration: 4_294_967_296 },
    { maximum_duration: 1.5 },
    { cookie_prefix: 'a-b' },
    { cookie_prefix: 'a;b' },
    { cookie_prefix: 'a\n' },
  ]
  for (const part of wrong) {
    assert.throws(() => put({ ...complete, ...part }), { field: Object.keys(part)[0] }, JSON.stringify(part))
  }
})
