import assert from 'node:assert/strict'
import { test } from 'node:test'
import { policyPartAt } from './policy-part.ts'

test('expressions and types of actions are parts of a policy, wherever it stands', () => {
  assert.equal(policyPartAt('inbound[0].expressions[2]'), 'expression')
  assert.equal(policyPartAt('outbound[10].actions[0].type'), 'action')
  assert.equal(policyPartAt('policy.inbound[0].actions[0].type'), 'action')
  for (const path of ['match_type', 'inbound[0].name', 'expressions[0]', 'xinbound[0].expressions[0]'])
    assert.equal(policyPartAt(path), undefined, path)
})
