import assert from 'node:assert/strict'
import { test } from 'node:test'
import { check } from '../../lib/shape/check.ts'
import { webhookProviders } from '../../model/webhook-providers.ts'
import { webhookVerification } from './form.ts'

const put = (body: unknown) => check(webhookVerification.at.route, body)

test('accepts every supported sender', () => {
  for (const provider of webhookProviders) {
    assert.deepEqual(put({ provider, secret: 's' }), { enabled: true, provider, secret: 's' })
  }
})

test('refuses an unknown sender, and suggests the nearest or lists all', () => {
  assert.throws(() => put({ provider: 'githup', secret: 's' }), {
    field: 'provider',
    message: /did you mean `github`\?/,
  })
  for (const provider of ['sns', '__proto__', '', 7]) {
    assert.throws(() => put({ provider, secret: 's' }), { field: 'provider', message: /one of `aftership`, `alchemy`/ })
  }
})

test('needs a sender and a secret, and never repeats the secret', () => {
  assert.throws(() => put({ secret: 's' }), { field: 'provider', kind: 'required' })
  assert.throws(() => put({ provider: 'github' }), { field: 'secret', kind: 'required' })
  assert.throws(() => put({ provider: 'github', secret: '' }), { field: 'secret', kind: 'value' })
  assert.throws(
    () => put({ provider: 'github', secret: 'hunter2'.repeat(600) }),
    (error) => error instanceof Error && !error.message.includes('hunter2'),
  )
})

test('keeps the secret sealed', () => assert.deepEqual(webhookVerification.secrets, ['secret']))

test('refuses a secret that the sender cannot have given', () => {
  const accept = (body: unknown) =>
    webhookVerification.accept?.(put(body), { place: 'route', at: 'webhook_verification.' })
  const bad = { provider: 'sendgrid', secret: 'hunter2' }
  assert.throws(() => accept(bad), {
    name: 'BadValue',
    field: 'webhook_verification.secret',
    message: /`webhook_verification\.secret` must be .* EC public key/,
  })
  assert.deepEqual(accept({ provider: 'github', secret: 'hunter2' }), {
    enabled: true,
    provider: 'github',
    secret: 'hunter2',
  })
})
