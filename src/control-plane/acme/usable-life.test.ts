import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeIdentity } from '../../../test/support/make-certificate.ts'
import { AcmeFault } from './order-fault.ts'
import { usableLife } from './usable-life.ts'

const notBefore = new Date('2030-01-01T00:00:00Z')
const notAfter = new Date('2030-04-01T00:00:00Z')
const during = Date.UTC(2030, 1, 1)
const { certificatePem: pem } = await makeIdentity({
  dnsNames: ['app.example.com', '*.example.org'],
  notBefore,
  notAfter,
})

test('a certificate for the name is valid for as long as it says', () => {
  const life = { notBefore: notBefore.getTime(), notAfter: notAfter.getTime() }
  assert.deepEqual(usableLife(pem, 'app.example.com', during), life)
  assert.deepEqual(usableLife(pem, '*.example.org', during), life)
  // Followed by a chain.
  assert.deepEqual(usableLife(pem + pem, 'app.example.com', during), life)
})

const useless: readonly [what: string, pem: string, name: string, now: number, message: RegExp][] = [
  ['for another name', pem, 'other.example.com', during, /It is not for other\.example\.com/],
  ['for the wildcard above the name', pem, 'www.example.org', during, /It is not for/],
  ['for a name that begins like it', pem, 'app.example.co', during, /It is not for/],
  ['that is over', pem, 'app.example.com', notAfter.getTime(), /expired/],
  ['that is none', 'hello', 'app.example.com', during, /not a certificate in PEM/],
  ['that is empty', '', 'app.example.com', during, /not a certificate in PEM/],
]
for (const [what, sent, name, now, message] of useless) {
  test(`a certificate ${what} is unusable, and so is its order`, () => {
    assert.throws(
      () => usableLife(sent, name, now),
      (error) => error instanceof AcmeFault && error.isOrderLost && message.test(error.message),
    )
  })
}
