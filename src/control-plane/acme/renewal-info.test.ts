import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadX509, makeIdentity } from '../../../test/support/make-certificate.ts'
import { readRenewalWindow, renewalId } from './renewal-info.ts'

test('the id of a certificate is that of the example in RFC 9773', async () => {
  const { AuthorityKeyIdentifierExtension } = await loadX509()
  const keyId = new AuthorityKeyIdentifierExtension('69885b6b87464041e1b37b847ba0ae2cde01c8d4')
  const { certificatePem } = await makeIdentity({ serialNumber: '87654321', extensions: [keyId] })
  assert.equal(renewalId(certificatePem), 'aYhba4dGQEHhs3uEe6CuLN4ByNQ.AIdlQyE')
  const small = await makeIdentity({ serialNumber: '07', extensions: [keyId] })
  assert.equal(renewalId(small.certificatePem), 'aYhba4dGQEHhs3uEe6CuLN4ByNQ.Bw')
})

test('a certificate that does not name its issuer has no such id', async () => {
  const { certificatePem } = await makeIdentity()
  assert.equal(renewalId(certificatePem), undefined)
})

const [start, end] = ['2030-01-01T00:00:00Z', '2030-01-02T00:00:00Z']
const window = { start: Date.parse(start), end: Date.parse(end) }

test('the authority is asked again when it says, after a minute to a day', () => {
  const ask = (retryAfterMs?: number) =>
    readRenewalWindow({ suggestedWindow: { start, end } }, { retryAfterMs, leastAskMs: 60_000 })
  assert.deepEqual(ask(), { ...window, askAgainMs: 6 * 3_600_000 })
  assert.deepEqual(ask(0), { ...window, askAgainMs: 60_000 })
  assert.deepEqual(ask(7 * 86_400_000), { ...window, askAgainMs: 86_400_000 })
})

for (const senseless of [
  null,
  'soon',
  {},
  { suggestedWindow: { start } },
  { suggestedWindow: { start: end, end: start } },
]) {
  test(`${JSON.stringify(senseless)} is no window`, () =>
    assert.equal(readRenewalWindow(senseless, { retryAfterMs: 0, leastAskMs: 0 }), undefined))
}
