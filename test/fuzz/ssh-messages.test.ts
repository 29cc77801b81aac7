/** The first cases of `ssh-messages.long.ts`, from a fixed seed. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SEED } from './smuggling-shapes.ts'
import { SshMessages } from './ssh-messages.ts'

const MUTATIONS = 2000

test(`${MUTATIONS} mutated SSH messages: they end connections, and nothing else`, async () => {
  const fuzz = await SshMessages.start()
  await fuzz.run(SEED, MUTATIONS)
  await fuzz.stop()
  for (const stage of ['bytes', 'login', 'session', 'ciphertext'] as const) {
    assert.ok(fuzz.tally[stage] >= MUTATIONS / 50, `${fuzz.tally[stage]} mutations of the stage ${stage}`)
  }
})
