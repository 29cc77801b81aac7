/** The long form of `test/e2e/edge-smuggling.test.ts`, for `npm run fuzz`: all shapes of its seed and of a new one. */
import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { after, before, test } from 'node:test'
import { World } from '../e2e/edges/world.ts'
import { Smuggling } from './smuggling.ts'
import { SEED, shapes } from './smuggling-shapes.ts'

const SHAPES = 20_000

let world: World
before(async () => {
  world = await World.start({ flags: { 'log-level': 'warn' } })
})
after(() => world.stop())

for (const seed of [SEED, Number(process.env.POSTERN_FUZZ_SEED ?? randomInt(2 ** 31))]) {
  test(`${SHAPES} shapes of requests (POSTERN_FUZZ_SEED=${seed})`, async (t) => {
    const smuggling = await Smuggling.start(world)
    await smuggling.run(shapes(seed, SHAPES))
    const { carried, refused, waited } = smuggling.tally
    t.diagnostic(`${carried} requests carried, ${refused} shapes refused, ${waited} waited for`)
    assert.ok(carried > SHAPES && refused > SHAPES / 4)
  })
}
