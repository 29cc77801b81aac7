import assert from 'node:assert/strict'
import { test } from 'node:test'
import { request } from '../testing/test-request.ts'
import { compileWebsocketTcpConverter } from './traffic.ts'

const { request: judge } = compileWebsocketTcpConverter()
const key = 'dGhlIHNhbXBsZSBub25jZQ=='
const handshake = { 'Sec-WebSocket-Key': key, 'Sec-WebSocket-Version': '13' }
const refused = { refuse: 'WEBSOCKET_REQUIRED', headers: [['Sec-WebSocket-Version', '13']] }

test('accepts a handshake', () => assert.equal(judge?.(request({ isUpgrade: true, headers: handshake })), undefined))

const others: Record<string, NonNullable<Parameters<typeof request>[0]>> = {
  'a plain request': {},
  'a plain request with the headers of a handshake': { headers: handshake },
  'an upgrade to something else': { isUpgrade: true },
  'an upgrade by POST': { isUpgrade: true, method: 'POST', headers: handshake },
  'another version': { isUpgrade: true, headers: { ...handshake, 'Sec-WebSocket-Version': '8' } },
  'a key that is none': { isUpgrade: true, headers: { ...handshake, 'Sec-WebSocket-Key': 'short' } },
  'two keys': { isUpgrade: true, headers: { ...handshake, 'Sec-WebSocket-Key': [key, key] } },
}

for (const [what, given] of Object.entries(others)) {
  test(`refuses ${what}`, () => assert.deepEqual(judge?.(request(given)), refused))
}
