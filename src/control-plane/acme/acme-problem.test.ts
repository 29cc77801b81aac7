import assert from 'node:assert/strict'
import { test } from 'node:test'
import { problemFault, readRetryAfter } from './acme-problem.ts'
import type { AcmeFaultCode } from './order-fault.ts'

const urn = (type: string) => ({ type: `urn:ietf:params:acme:error:${type}`, detail: 'in their words' })

const problems: readonly [status: number, body: unknown, code: AcmeFaultCode, fate: 'lost' | 'account' | 'kept'][] = [
  [429, urn('rateLimited'), 'AUTHORITY_RATE_LIMIT', 'kept'],
  [503, urn('rateLimited'), 'AUTHORITY_RATE_LIMIT', 'kept'],
  [429, 'slow down', 'AUTHORITY_UNAVAILABLE', 'kept'],
  [500, urn('serverInternal'), 'AUTHORITY_UNAVAILABLE', 'kept'],
  [502, '<html>', 'AUTHORITY_UNAVAILABLE', 'kept'],
  [500, urn('unauthorized'), 'AUTHORITY_UNAVAILABLE', 'kept'],
  [400, urn('accountDoesNotExist'), 'ACME_ACCOUNT_REFUSED', 'account'],
  [403, urn('externalAccountRequired'), 'ACME_ACCOUNT_REFUSED', 'kept'],
  [400, urn('rejectedIdentifier'), 'CERTIFICATE_REFUSED', 'lost'],
  [403, urn('unauthorized'), 'CHALLENGE_FAILED', 'lost'],
  [404, 'gone', 'CERTIFICATE_REFUSED', 'lost'],
  [400, null, 'CERTIFICATE_REFUSED', 'lost'],
  [400, { type: 7, detail: ['x'] }, 'CERTIFICATE_REFUSED', 'lost'],
]
for (const [status, body, code, fate] of problems) {
  test(`${status} with ${JSON.stringify(body)} is ${code}`, () => {
    const { isOrderLost, isAccountLost, ...fault } = problemFault(status, body)
    assert.equal(fault.code, code)
    assert.equal(isOrderLost, fate === 'lost')
    assert.equal(isAccountLost, fate === 'account')
  })
}

test('text of the authority is shown on one line, up to a limit', () => {
  const { message } = problemFault(400, { ...urn('dns'), detail: `first\nsecond\u0000\u001b[31m ${'x'.repeat(5000)}` })
  assert.match(message, /first second \[31m xxx/)
  assert.ok(message.length < 700)
})

const NOW = Date.UTC(2030, 0, 1)
const waits: readonly [text: string | null, ms: number | undefined][] = [
  [null, undefined],
  ['0', 0],
  ['90', 90_000],
  ['Tue, 01 Jan 2030 00:01:00 GMT', 60_000],
  ['Mon, 31 Dec 2029 00:00:00 GMT', 0],
  ['soon', undefined],
  ['999999999', 7 * 86_400_000],
  ['Tue, 01 Jan 2999 00:00:00 GMT', 7 * 86_400_000],
]
for (const [text, ms] of waits) {
  test(`Retry-After: ${text} is ${ms} ms`, () => assert.equal(readRetryAfter(text, NOW), ms))
}
