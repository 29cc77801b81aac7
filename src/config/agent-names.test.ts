import assert from 'node:assert/strict'
import { test } from 'node:test'
import { namesForAgents } from './agent-names.ts'

test('agents reach the server at this machine, at its domain, and at what the operator adds', () => {
  assert.deepEqual(namesForAgents('tunnels.example.com', ['203.0.113.7']), [
    'localhost',
    '127.0.0.1',
    '::1',
    'tunnels.example.com',
    'connect.tunnels.example.com',
    '203.0.113.7',
  ])
})

test('a name that is there already is not there twice', () => {
  assert.deepEqual(namesForAgents('localhost', ['connect.localhost', '::1']), [
    'localhost',
    '127.0.0.1',
    '::1',
    'connect.localhost',
  ])
})
