import assert from 'node:assert/strict'
import { test } from 'node:test'
import { check } from '../../lib/shape/check.ts'
import type { ModuleConfig } from '../module.ts'
import { responseHeaders } from './form.ts'

function put(body: unknown, at = ''): ModuleConfig {
  assert.ok(responseHeaders.at.route && responseHeaders.accept)
  return responseHeaders.accept(check(responseHeaders.at.route, body), { place: 'route', at })
}

test('keeps names as the caller spelled them', () => {
  const { add, remove } = put({ add: { 'X-Frame-Options': 'DENY' }, remove: ['Server', 'X-Powered-By'] })
  assert.deepEqual({ ...(add as object) }, { 'X-Frame-Options': 'DENY' })
  assert.deepEqual(remove, ['Server', 'X-Powered-By'])
  assert.deepEqual(put({}), { enabled: true, add: {}, remove: [] })
})

test('a response has no `host` to protect', () => {
  assert.deepEqual(put({ remove: ['Host'] }).remove, ['Host'])
})

for (const name of ['Connection', 'transfer-encoding', 'Content-Length', 'Trailer', 'Postern-Error-Code', 'a b', '']) {
  test(`refuses to add or remove ${JSON.stringify(name)}`, () => {
    const field = `add[${JSON.stringify(name)}]`
    assert.throws(() => put({ add: { [name]: 'x' } }), { name: 'BadValue', field, kind: 'value' })
    assert.throws(() => put({ remove: ['ok', name] }, 'response_headers.'), {
      name: 'BadValue',
      field: 'response_headers.remove[1]',
      kind: 'value',
    })
  })
}

test('refuses the same name in two spellings, and values with line breaks', () => {
  assert.throws(() => put({ add: { 'X-A': '1', 'x-a': '2' } }), { field: 'add["x-a"]', message: /`X-A`/ })
  assert.throws(() => put({ remove: ['X-A', 'x-a'] }), { field: 'remove[1]', message: /`remove\[0\]`/ })
  assert.throws(() => put({ add: { 'x-a': 'a\r\nset-cookie: b' } }), { field: 'add["x-a"]', kind: 'value' })
})
