/** 100,000 mutated SSH messages, for `npm run fuzz`, with a new seed every time. */
import { randomInt } from 'node:crypto'
import { test } from 'node:test'
import { SshMessages } from './ssh-messages.ts'

const MUTATIONS = Number(process.env.POSTERN_FUZZ_MUTATIONS ?? 100_000)

const seed = Number(process.env.POSTERN_FUZZ_SEED ?? randomInt(2 ** 31))

test(`${MUTATIONS} mutated SSH messages (POSTERN_FUZZ_SEED=${seed})`, async (t) => {
  const fuzz = await SshMessages.start()
  await fuzz.run(seed, MUTATIONS, (sent) => console.log(`# ${sent} sent`))
  await fuzz.stop()
  t.diagnostic(JSON.stringify(fuzz.tally))
})
