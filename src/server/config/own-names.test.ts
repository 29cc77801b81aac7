import assert from 'node:assert/strict'
import { test } from 'node:test'
import { keptNames, namesForAgents, namesOfApi, ownNames, reachedBy } from './own-names.ts'
import { readSettings } from './read-settings.ts'

const settingsOf = (flags: Readonly<Record<string, string>>) => readSettings({ flags, env: {}, cwd: '/' })

test('the API is known by its URL, by where it listens, and by the domain', () => {
  const flags = { 'api-url': 'https://api.example.com:7400', 'api-listen': '192.0.2.7:7400', domain: 't.example.com' }
  const local = ['localhost', '127.0.0.1', '::1']
  assert.deepEqual(namesOfApi(settingsOf(flags)), [...local, 't.example.com', 'api.example.com', '192.0.2.7'])
  assert.deepEqual(namesOfApi(settingsOf({ 'api-listen': '0.0.0.0:7400' })), local)
})

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

test('all names of the server are those of the API and those for agents, in lower case', () => {
  const flags = { 'api-url': 'https://API.example.com', 'agent-names': 'Agents.example.com', domain: 't.example.com' }
  const all = reachedBy({ ...settingsOf(flags), agentAddress: { host: 'Node-1.example.com', port: 7443 } })
  const names = [
    't.example.com',
    'connect.t.example.com',
    'api.example.com',
    'agents.example.com',
    'node-1.example.com',
  ]
  for (const name of ['localhost', ...names]) assert.ok(all.has(name), name)
  assert.ok(!all.has('example.com'))
})

test('kept for the server are the names in its settings, but neither addresses, nor the domain, nor `localhost`', () => {
  const kept = (flags: Record<string, string>, more = {}) => [...keptNames({ ...settingsOf(flags), ...more })]
  assert.deepEqual(kept({ 'api-url': 'http://localhost:7400' }), ['connect.localhost'])
  const flags = {
    domain: 't.example.com',
    'api-url': 'https://API.example.com.:7400/x',
    'agent-names': 'a.example.com,192.0.2.7,::1',
  }
  const names = ['api.example.com', 'connect.t.example.com', 'a.example.com']
  assert.deepEqual(kept(flags), names)
  assert.deepEqual(kept(flags, { agentAddress: { host: 'Node-1.example.com', port: 1 } }), [
    ...names,
    'node-1.example.com',
  ])
  const listening = { 'api-listen': 'machine.example.com:7400', 'agent-names': 't.example.com' }
  assert.deepEqual(kept(listening), ['connect.localhost', 't.example.com'])
  assert.deepEqual(kept({ ...listening, 'api-tls': 'on' })[0], 'machine.example.com')
})

test('certificates are ordered for names of listeners that use them, and never for IP addresses', () => {
  const api = { 'api-url': 'https://api.example.com' }
  const agents = { 'agent-names': 'agents.example.com,192.0.2.7,API.example.com' }
  assert.deepEqual(ownNames(settingsOf({ ...api, ...agents })), [])
  assert.deepEqual(ownNames(settingsOf({ ...api, 'api-tls': 'on' })), ['api.example.com'])
  assert.deepEqual(ownNames(settingsOf({ 'api-tls': 'on', 'api-url': 'https://192.0.2.7' })), [])
  const all = { ...api, ...agents, 'api-tls': 'on', 'agent-certificate': 'public' }
  assert.deepEqual(ownNames(settingsOf(all)), ['api.example.com', 'agents.example.com'])
})

test('DNS servers are addresses, with or without a port', () => {
  const text = '192.0.2.1, 192.0.2.1:5353,2001:db8::1,[2001:db8::1]:53'
  const { dnsServers } = settingsOf({ 'dns-servers': text })
  assert.deepEqual(dnsServers, ['192.0.2.1', '192.0.2.1:5353', '2001:db8::1', '[2001:db8::1]:53'])
  for (const bad of ['dns.example.com', '192.0.2.1:0', '192.0.2.1:70000', '192.0.2.1,', '[192.0.2.1]:53', 'x']) {
    assert.throws(() => settingsOf({ 'dns-servers': bad }), /dns-servers/, bad)
  }
})
