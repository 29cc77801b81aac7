import assert from 'node:assert/strict'
import { test } from 'node:test'
import { policyWords } from './policy-words.ts'

test('lists actions, variables with their fields, and functions', () => {
  const { actions, variables, functions } = policyWords()
  assert.ok(actions.includes('deny') && actions.includes('rate-limit'))
  for (const word of ['req', 'req.url.path', 'conn.client_ip', 'res.status_code', 'vars', 'actions.ngrok.log']) {
    assert.ok(variables.includes(word), word)
  }
  for (const word of ['size', 'base64.encode', '.startsWith', '.exists', 'has']) {
    assert.ok(functions.includes(word), word)
  }
  assert.equal(new Set(variables).size, variables.length)
})
