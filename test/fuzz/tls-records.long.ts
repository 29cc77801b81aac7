/** Hostile TLS records for POSTERN_FUZZ_SECONDS, for `npm run fuzz`, with a new seed every time. */
import { randomInt } from 'node:crypto'
import { test } from 'node:test'
import { TlsRecords } from './tls-records.ts'

const SECONDS = Number(process.env.POSTERN_FUZZ_SECONDS ?? 120)

const seed = Number(process.env.POSTERN_FUZZ_SEED ?? randomInt(2 ** 31))

test(`TLS records for ${SECONDS} s (POSTERN_FUZZ_SEED=${seed})`, async (t) => {
  const fuzz = await TlsRecords.start()
  const until = performance.now() + SECONDS * 1000
  try {
    await fuzz.run(seed, () => performance.now() >= until)
  } finally {
    await fuzz.stop()
  }
  const { sent, shown, refused } = fuzz.tally
  t.diagnostic(`${sent} hellos: ${refused} refused, ${JSON.stringify(shown)} answered`)
})
