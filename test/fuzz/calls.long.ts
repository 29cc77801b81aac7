/** The long form of `calls.test.ts`, for `npm run fuzz`: 50,000 calls on each store, with a line for every 5,000. */
import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { after, before, test } from 'node:test'
import { eachStore } from '../support/databases.ts'
import { type Platform, startPlatform } from '../support/platform.ts'
import { Fuzz } from './calls.ts'

const PORTION = 5000
const PORTIONS = 10

const seed = Number(process.env.POSTERN_FUZZ_SEED ?? randomInt(2 ** 31))

eachStore((store) => {
  let platform: Platform
  let fuzz: Fuzz
  before(async () => {
    platform = await startPlatform({ databaseUrl: await store.url(), flags: { 'log-level': 'warn' } })
    fuzz = await Fuzz.start(platform, seed)
  })
  after(async () => {
    fuzz.close()
    await platform.stop()
  })

  for (let portion = 1; portion <= PORTIONS; portion++) {
    // The state grows from portion to portion, and with it what calls can hit. Some calls are watched one by one.
    test(`${portion * PORTION} calls (POSTERN_FUZZ_SEED=${seed})`, async (t) => {
      await fuzz.run({ calls: PORTION / 5, serial: true })
      await fuzz.run({ calls: (PORTION * 4) / 5, serial: false })
      const { calls, statuses, succeeded, longestMs } = fuzz.tally
      const byStatus = [...statuses].sort(([a], [b]) => a - b).map(([status, count]) => `${status}: ${count}`)
      t.diagnostic(
        `${store.name} ${calls} calls, ${byStatus.join(', ')}; ${succeeded.size} of ${fuzz.called.length} operations succeeded; event loop held up ${longestMs} ms at most`,
      )
      assert.deepEqual(
        platform.log.filter((line) => /"level":"(error|fatal)"/.test(line)),
        [],
      )
    })
  }

  test('all that is stored can be listed and fetched', async (t) => {
    t.diagnostic(`${store.name}: ${await fuzz.takeStock()} resources`)
    const never = fuzz.called.filter(({ name }) => !fuzz.tally.succeeded.has(name)).map(({ name }) => name)
    // No agent is online, so nothing that needs a session, a tunnel or an endpoint can succeed.
    assert.deepEqual(
      never.filter((name) => !/(tunnel|session|endpoint)$/.test(name)),
      [],
    )
  })
})
