import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { HeaderSettings } from '../headers/header-form.ts'
import { request, response } from '../testing/test-request.ts'
import { testTools } from '../testing/test-tools.ts'
import { responseHeaders } from './form.ts'
import { compileResponseHeaders } from './traffic.ts'

const tools = testTools()
const lookup = { ipRules: () => assert.fail(), authority: () => assert.fail(), backend: () => assert.fail() }

function changed(settings: HeaderSettings, headers: Record<string, string | string[]>): [string, string][] {
  const incoming = response({ status: 201, headers })
  void compileResponseHeaders(settings, tools).response?.(incoming, request())
  return [...incoming.headers]
}

test('removes, then adds, with values filled in', () => {
  const config = { enabled: true, add: { 'X-Status': '${http.response.status_code}' }, remove: ['Server'] }
  const settings = responseHeaders.resolve(config, lookup, 'route')
  assert.deepEqual(changed(settings, { server: 'nginx', 'x-a': 'b' }), [
    ['x-a', 'b'],
    ['x-status', '201'],
  ])
})

test('one name may be added more than once', () => {
  const add = [['Set-Cookie', 'a=1'] as const, ['set-cookie', 'b=2'] as const]
  assert.deepEqual(changed({ add, remove: [] }, {}), [
    ['set-cookie', 'a=1'],
    ['set-cookie', 'b=2'],
  ])
})
