import assert from 'node:assert/strict'
import { test } from 'node:test'
import { check } from '../../lib/shape/check.ts'
import type { ModuleConfig } from '../module.ts'
import { requestHeaders } from './form.ts'

function put(body: unknown, at = ''): ModuleConfig {
  assert.ok(requestHeaders.at.route && requestHeaders.accept)
  return requestHeaders.accept(check(requestHeaders.at.route, body), { place: 'route', at })
}

test('keeps names as the caller spelled them', () => {
  const { add, remove } = put({ add: { 'X-Frame-Id': 'a\tb', Host: 'inner.example' }, remove: ['X-OLD', 'hOst'] })
  assert.deepEqual(Object.entries(add as object), [
    ['X-Frame-Id', 'a\tb'],
    ['Host', 'inner.example'],
  ])
  assert.deepEqual(remove, ['X-OLD', 'hOst'])
  assert.deepEqual(put({}), { enabled: true, add: {}, remove: [] })
})

test('a header may be removed and added, which replaces it', () => {
  assert.deepEqual(put({ add: { cookie: 'a=1' }, remove: ['Cookie'] }).remove, ['Cookie'])
})

const forbidden = [
  'User-Agent',
  'connection',
  'Keep-Alive',
  'Proxy-Authorization',
  'proxy-connection',
  'TE',
  'Trailer',
  'transfer-encoding',
  'Upgrade',
  'Content-Length',
  'Expect',
  '',
  'a b',
  'a:b',
  ':path',
  'é',
  'x\r\ny',
]

for (const name of forbidden) {
  test(`refuses to add or remove ${JSON.stringify(name)}`, () => {
    const field = `add[${JSON.stringify(name)}]`
    assert.throws(() => put({ add: { [name]: 'x' } }), { name: 'BadValue', field, kind: 'value' })
    assert.throws(() => put({ remove: ['ok', name] }, 'request_headers.'), {
      name: 'BadValue',
      field: 'request_headers.remove[1]',
      kind: 'value',
    })
  })
}

test('headers that the edge sets may be removed, but not added', () => {
  assert.throws(() => put({ add: { 'Postern-Auth-User-Id': 'root' } }), { field: 'add["Postern-Auth-User-Id"]' })
  assert.deepEqual(put({ remove: ['Postern-Auth-User-Id'] }).remove, ['Postern-Auth-User-Id'])
})

test('refuses the same name in two spellings', () => {
  assert.throws(() => put({ add: { 'X-A': '1', 'x-a': '2' } }), { field: 'add["x-a"]', message: /`X-A`/ })
  assert.throws(() => put({ remove: ['X-A', 'b', 'x-a'] }), { field: 'remove[2]', message: /`remove\[0\]`/ })
})

test('host is never removed without a new one', () => {
  assert.throws(() => put({ remove: ['Host'] }), { field: 'remove[0]', kind: 'value' })
})

test('refuses values with control characters', () => {
  for (const value of ['a\r\nx-b: 1', 'a\nb', 'a\rb', 'a\0b', 'a\x1bb', '\x7f']) {
    assert.throws(() => put({ add: { 'x-a': value } }), { field: 'add["x-a"]', kind: 'value' })
  }
})

test('holds the bounds on count, names and values', () => {
  const many = (n: number): string[] => Array.from({ length: n }, (_, i) => `x-${i}`)
  const add = (n: number): object => Object.fromEntries(many(n).map((name) => [name, 'v']))
  put({ add: add(100), remove: many(100) })
  assert.throws(() => put({ add: add(101) }), { field: 'add' })
  assert.throws(() => put({ remove: many(101) }), { field: 'remove' })
  put({ add: { ['x'.repeat(256)]: 'v'.repeat(4096) }, remove: ['x'.repeat(256)] })
  assert.throws(() => put({ add: { ['x'.repeat(257)]: 'v' } }), { kind: 'too_long' })
  assert.throws(() => put({ add: { x: 'v'.repeat(4097) } }), { kind: 'too_long' })
  assert.throws(() => put({ remove: ['x'.repeat(257)] }), { kind: 'too_long' })
})

test('too many variables: the message names the header that exceeds the limit', () => {
  const add = { a: '${x}'.repeat(600), b: '${x}'.repeat(400), c: '${x}' }
  assert.throws(() => put({ add }, 'request_headers.'), {
    name: 'BadValue',
    field: 'request_headers.add["c"]',
    message: /over 1000 `\$\{…\}` in all/,
  })
  assert.deepEqual(Object.keys(put({ add: { a: add.a, b: add.b } }).add as object), ['a', 'b'])
})
