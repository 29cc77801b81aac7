import assert from 'node:assert/strict'
import { test } from 'node:test'
import { headerList, request } from '../testing/test-request.ts'
import { testTools } from '../testing/test-tools.ts'
import { requestHeaders } from './form.ts'
import { compileRequestHeaders } from './traffic.ts'

const tools = testTools()
const lookup = { ipRules: () => assert.fail(), authority: () => assert.fail(), backend: () => assert.fail() }

function compile({ add = {}, remove = [] }: { add?: Record<string, string>; remove?: string[] }) {
  return compileRequestHeaders(requestHeaders.resolve({ enabled: true, add, remove }, lookup, 'route'), tools)
}

function sent(changes: Parameters<typeof compile>[0], headers: Record<string, string | string[]>): [string, string][] {
  const list = headerList(headers)
  compile(changes).upstream?.({ headers: list }, request())
  return [...list]
}

test('removes, then adds', () => {
  assert.deepEqual(sent({ remove: ['FOO'], add: { foo: 'b' } }, { foo: 'a' }), [['foo', 'b']])
  assert.deepEqual(sent({ add: { foo: 'b' } }, { foo: 'a' }), [
    ['foo', 'a'],
    ['foo', 'b'],
  ])
  assert.deepEqual(sent({ remove: ['foo'] }, { Foo: ['a', 'b'], bar: 'c' }), [['bar', 'c']])
})

test('what the edge added itself can be removed', () => {
  const headers = { 'X-Forwarded-For': '192.0.2.7', 'postern-mtls-subject-cn': 'jane' }
  assert.deepEqual(sent({ remove: ['x-forwarded-for', 'Postern-Mtls-Subject-Cn'] }, headers), [])
})

test('values are filled in for each request', () => {
  assert.deepEqual(sent({ add: { ip: '${conn.client_ip}', none: '${no.such}' } }, {}), [
    ['ip', '192.0.2.7'],
    ['none', ''],
  ])
})

test('host is replaced, not added', () => {
  const ctx = request()
  const headers = headerList({})
  compile({ add: { Host: 'x.local' }, remove: ['host'] }).upstream?.({ headers }, ctx)
  assert.equal(ctx.replacedHost, 'x.local')
  assert.deepEqual([...headers], [])
})

test('an empty host replaces nothing, and a broken one is cleaned', () => {
  const hosts = ['${no.such}', 'a b\tc'].map((Host) => {
    const ctx = request()
    compile({ add: { Host } }).upstream?.({ headers: headerList({}) }, ctx)
    return ctx.replacedHost
  })
  assert.deepEqual(hosts, [undefined, 'abc'])
})
