/** The first cases of `proxy-headers.long.ts`, from a fixed seed. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ProxyHeaders } from './proxy-headers.ts'
import { SEED } from './smuggling-shapes.ts'

const CASES = 1500

test(`${CASES} PROXY headers: only valid ones name a visitor, and nothing breaks`, async () => {
  const fuzz = await ProxyHeaders.start()
  try {
    await fuzz.run(SEED, (sent) => sent >= CASES)
  } finally {
    await fuzz.stop()
  }
  const { served, refused } = fuzz.tally
  assert.ok(served > CASES / 5 && refused > CASES / 5, `${served} served, ${refused} refused`)
})
