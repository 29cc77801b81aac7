/** Whatever a visitor sends, the service gets exactly the requests that the edge saw. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Smuggling } from '../fuzz/smuggling.ts'
import { frameCases } from '../fuzz/smuggling-http2.ts'
import { SEED, shapes } from '../fuzz/smuggling-shapes.ts'
import { World } from './edges/world.ts'

/** How many shapes are sent; `npm run fuzz` sends more. */
const SHAPES = 5000
const EVERY = 6

const seed = Number(process.env.POSTERN_FUZZ_SEED ?? SEED)

let world: World
before(async () => {
  world = await World.start({ flags: { 'log-level': 'warn' } })
})
after(() => world.stop())

test(`the edge, its service and a strict parser read the same (POSTERN_FUZZ_SEED=${seed})`, async () => {
  const smuggling = await Smuggling.start(world)
  const from = seed % EVERY
  await smuggling.run([...shapes(seed, SHAPES)].filter((_, i) => i % EVERY === from))
  const { sent, carried, refused, waited } = smuggling.tally
  assert.ok(sent > SHAPES / EVERY - 2)
  assert.ok(carried > sent / 2 && refused > sent / 4, `${carried} requests of ${sent} shapes, ${refused} refused`)
  assert.ok(waited <= sent / 100, `${waited} timed out`)
})

test('an HTTP/2 request reaches the service as one HTTP/1.1 request or not at all', async (t) => {
  const smuggling = await Smuggling.start(world)
  for (const each of frameCases) {
    await t.test(`${each.what}: ${each.passes}`, () => smuggling.tryFrames(each))
  }
})
