import assert from 'node:assert/strict'
import { test } from 'node:test'
import { agentCommand } from './agent-command.ts'

const cases: [agents: string, pageHost: string, server: string][] = [
  ['127.0.0.1:7443', 'localhost', '127.0.0.1:7443'],
  ['0.0.0.0:7443', 'postern.example.com', 'postern.example.com:7443'],
  ['[::]:7443', '[::1]', '[::1]:7443'],
]
for (const [agents, pageHost, server] of cases) {
  test(`agents of ${agents}, seen at ${pageHost}, connect to ${server}`, () => {
    assert.ok(agentCommand({ agents, pageHost, token: 'abc' }).includes(` --server ${server} --ca `))
  })
}

test('a token that does not exist yet is left blank', () => {
  assert.match(agentCommand({ agents: 'a:1', pageHost: 'a', token: '' }), /--authtoken …$/)
  assert.match(agentCommand({ agents: 'a:1', pageHost: 'a', token: 'tok_1' }), /--authtoken tok_1$/)
})
