import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Phases } from '../phases.ts'
import { request } from '../testing/test-request.ts'
import { compileWebhookVerification } from './traffic.ts'

const secret = 'a secret of the test'
const NOW = 1_700_000_000
const refused = { refuse: 'WEBHOOK_REFUSED' }

function compile({ provider }: { provider: string }): NonNullable<Phases['request']> {
  const phase = compileWebhookVerification({ provider, secret }, { now: () => NOW * 1000 }).request
  assert.ok(phase)
  return phase
}

test('an unsigned request is refused without reading its body', async () => {
  const ctx = { ...request({ method: 'POST' }), readBody: () => assert.fail('the body was read') }
  assert.deepEqual(await compile({ provider: 'github' })(ctx), refused)
})

describe('a signature that cannot be right is refused without reading the body:', () => {
  const hex = '0'.repeat(64)
  const cases: [what: string, provider: string, headers: Record<string, string>][] = [
    ['of another length', 'github', { 'X-Hub-Signature-256': `sha256=${hex}00` }],
    ['of other letters', 'github', { 'X-Hub-Signature-256': `sha256=${'x'.repeat(64)}` }],
    ['without its prefix', 'github', { 'X-Hub-Signature-256': hex }],
    ['base64 of another length', 'shopify', { 'X-Shopify-Hmac-Sha256': 'AAAA' }],
    ['out of date', 'slack', { 'X-Slack-Signature': `v0=${hex}`, 'X-Slack-Request-Timestamp': '1' }],
    ['without a time', 'stripe', { 'Stripe-Signature': `v1=${hex}` }],
    ['a token that is another', 'gitlab', { 'X-Gitlab-Token': 'another' }],
    ['Twilio', 'twilio', { 'X-Twilio-Signature': 'x' }],
  ]
  for (const [what, provider, headers] of cases) {
    test(what, async () => {
      const ctx = { ...request({ method: 'POST', headers }), readBody: () => assert.fail('the body was read') }
      assert.deepEqual(await compile({ provider })(ctx), refused)
    })
  }
})

test('a sender that does not sign the body is let in without reading it', async () => {
  const headers = { 'X-Gitlab-Token': secret }
  const ctx = { ...request({ method: 'POST', headers }), readBody: () => assert.fail('the body was read') }
  assert.equal(await compile({ provider: 'gitlab' })(ctx), undefined)
})

test('a body for which there is no memory is refused with Retry-After', async () => {
  const headers = { 'X-Hub-Signature-256': `sha256=${'0'.repeat(64)}` }
  const ctx = { ...request({ method: 'POST', headers }), readBody: async () => 'no_memory' as const }
  const verdict = await compile({ provider: 'github' })(ctx)
  assert.deepEqual(verdict, { refuse: 'BODY_MEMORY_FULL', headers: [['Retry-After', '5']] })
})
