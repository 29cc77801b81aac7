import assert from 'node:assert/strict'
import { test } from 'node:test'
import { namesForAgents } from './agent-names.ts'

test('agents reach the server at this machine, at its domain, and at names that the operator adds', () => {
  const agentAddress = { host: 'Node-1.example.com', port: 7443 }
  assert.deepEqual(namesForAgents({ domain: 'tunnels.example.com', agentNames: ['203.0.113.7'], agentAddress }), [
    'localhost',
    '127.0.0.1',
    '::1',
    'tunnels.example.com',
    'connect.tunnels.example.com',
    '203.0.113.7',
    'node-1.example.com',
  ])
})

test('a name that is given twice is listed once', () => {
  const agentNames = ['connect.localhost', '::1']
  assert.deepEqual(namesForAgents({ domain: 'localhost', agentNames, agentAddress: null }), [
    'localhost',
    '127.0.0.1',
    '::1',
    'connect.localhost',
  ])
})
