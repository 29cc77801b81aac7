import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { test } from 'node:test'
import { eachStore } from '../support/databases.ts'
import { startPlatform } from '../support/platform.ts'
import { Fuzz } from './calls.ts'

/** More tries for calls that never succeeded: one in ten of the hardest does, so chance alone never fails the test. */
const CALLS_FOR_BARREN = 50
const ROUNDS_FOR_BARREN = 6

const seed = Number(process.env.POSTERN_FUZZ_SEED ?? randomInt(2 ** 31))

eachStore((store) => {
  test(`no call breaks the API or leaves half of itself behind (POSTERN_FUZZ_SEED=${seed})`, async () => {
    const platform = await startPlatform({ databaseUrl: await store.url() })
    const fuzz = await Fuzz.start(platform, seed)
    try {
      await fuzz.run({ calls: 300, serial: true })
      await fuzz.run({ calls: 700, serial: false })
      assert.ok((await fuzz.takeStock()) > 50, 'hardly anything was created: the calls no longer fit the API')
      // Each operation gets only a few of the calls, and by chance all of these may be bad.
      for (let round = 0; round < ROUNDS_FOR_BARREN && fuzz.barren.length > 0; round++) {
        const { barren } = fuzz
        await fuzz.run({ calls: CALLS_FOR_BARREN * barren.length, serial: false, of: barren })
      }
      assert.deepEqual(
        fuzz.barren.map(({ name }) => name),
        [],
        'these never succeeded: the calls no longer fit them',
      )
      const loud = platform.log.filter((line) => /"level":"(error|fatal)"/.test(line))
      assert.deepEqual(loud, [])
    } finally {
      fuzz.close()
      await platform.stop()
    }
  })
})
