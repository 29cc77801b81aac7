/** The first cases of `tls-records.long.ts`, from a fixed seed. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SEED } from './smuggling-shapes.ts'
import { TlsRecords } from './tls-records.ts'

const CASES = 1000

test(`${CASES} visitors with hostile records: every edge enforces its TLS settings, and nothing breaks`, async () => {
  const fuzz = await TlsRecords.start()
  try {
    await fuzz.run(SEED, (sent) => sent >= CASES)
  } finally {
    await fuzz.stop()
  }
  const { shown, refused } = fuzz.tally
  assert.ok(refused > CASES / 5, `${refused} refused`)
  for (const name of ['open', 'mutual', 'nobody'])
    assert.ok((shown[`${name}.fuzz.test`] ?? 0) > 10, `${name} was answered`)
})
