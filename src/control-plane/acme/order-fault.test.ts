import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AcmeFault, reasonOf } from './order-fault.ts'

test('the reason of a fault is one line that names each cause once, without a stack', () => {
  const cause = new Error('connect ECONNREFUSED 192.0.2.1:443')
  const fetching = new Error('fetch failed', { cause })
  const fault = new AcmeFault('AUTHORITY_UNAVAILABLE', fetching.message, { cause: fetching })
  assert.equal(
    reasonOf(fault),
    'The certificate authority cannot be reached or does not work at the moment. fetch failed: connect ECONNREFUSED 192.0.2.1:443',
  )
  assert.equal(reasonOf('a\nb'), 'a b')
  const round = new Error('round')
  round.cause = round
  assert.equal(reasonOf(round), 'round')
})
