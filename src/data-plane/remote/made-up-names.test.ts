/** Names that strangers make up: they take neither room nor turns from names that somebody has. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { AGED_MS, MANY_ASKED, MANY_NAMES, OLD_MS, placeOf, RemotePlane, settled } from './testing/test-node-tunnels.ts'

let plane: RemotePlane
beforeEach(() => {
  plane = new RemotePlane()
})
afterEach(() => plane.nodes.close())

const NAME = 'a.example.com'
const PLACE = `secure:${NAME}`

describe('made-up names', () => {
  test('do not push out those that somebody has, in use or not', async () => {
    plane.store(placeOf(PLACE), placeOf('secure:x1.test', { tunnelId: 'tn_2' }))
    await plane.look(NAME)
    await plane.look('x1.test')
    for (let i = 2; i <= MANY_NAMES; i++) {
      await plane.look(`x${i}.test`)
      if (i % 5000 !== 0) continue
      plane.now += AGED_MS
      assert.equal(await plane.look(NAME), false, 'no second wait')
    }
    assert.deepEqual(plane.ids, ['ep_tn_1', 'ep_tn_2'])
  })

  test('below a wildcard push out those below it, and no other that somebody has', async () => {
    plane.store(placeOf('secure:*.example.com'), placeOf('secure:b.test', { tunnelId: 'tn_2' }))
    await plane.look('b.test')
    for (let i = 0; i < MANY_NAMES; i++) await plane.look(`x${i}.example.com`)
    assert.deepEqual(plane.ids, ['ep_tn_1', 'ep_tn_2'])
    const asked = plane.asked.length
    assert.equal(await plane.look('b.test'), false)
    await plane.look('x0.example.com')
    assert.equal(plane.asked.length, asked + 1, 'x0 was forgotten')
  })

  test('wait for their turn when too many are being looked up, and are never taken for nobody’s', async () => {
    const held = Promise.withResolvers<void>()
    plane.held = held.promise
    const waits = Array.from({ length: MANY_ASKED }, (_, i) => plane.nodes.lookUp('secure', `x${i}.test`))
    assert.deepEqual([waits.includes(undefined), plane.asked.length], [false, MANY_ASKED - 1])
    plane.held = undefined
    held.resolve()
    for (const wait of waits) await wait
    assert.equal(plane.asked.length, MANY_ASKED)
  })

  test('of one source leave room for the names of others, which are looked up next', async () => {
    plane.store(placeOf(PLACE))
    const flood = Promise.withResolvers<void>()
    plane.held = flood.promise
    const attacked = Array.from({ length: 2 * MANY_ASKED }, (_, i) =>
      plane.nodes.lookUp('secure', `x${i}.test`, {}, `2001:db8::${i.toString(16)}`),
    )
    // It wants the visitor's name as well, and gets no turn for it.
    attacked.push(plane.nodes.lookUp('secure', NAME, {}, '2001:db8::1'))
    const visit = plane.look(NAME, 'secure', '192.0.2.9')
    plane.held = Promise.withResolvers<void>().promise
    flood.resolve()
    await settled()
    assert.equal(plane.asked[MANY_ASKED - 1], PLACE, 'the first after those that were under way')
    plane.held = undefined
    await Promise.race([visit, settled()])
  })

  test('make a visitor who waits in vain come again: 503, and not 404', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    plane.store(placeOf(PLACE))
    const held = Promise.withResolvers<void>()
    plane.held = held.promise
    for (let i = 0; i < MANY_ASKED; i++) void plane.nodes.lookUp('secure', `x${i}.test`, {}, '192.0.2.1')
    const wait = plane.nodes.lookUp('secure', NAME, {}, '192.0.2.9')
    t.mock.timers.tick(2500)
    await wait
    assert.equal(plane.nodes.lookUp('secure', NAME, { hasWaited: true }, '192.0.2.9'), 'busy')
    t.mock.timers.reset()
    plane.held = undefined
    held.resolve()
    await settled()
    await plane.look(NAME)
    assert.deepEqual(plane.ids, ['ep_tn_1'])
  })

  test('keep nobody from a name whose place is known, however old', async (t) => {
    plane.store(placeOf(PLACE))
    await plane.look(NAME)
    t.mock.timers.enable({ apis: ['setTimeout'] })
    plane.now += OLD_MS
    const held = Promise.withResolvers<void>()
    plane.held = held.promise
    for (let i = 0; i < MANY_ASKED; i++) void plane.nodes.lookUp('secure', `x${i}.test`, {}, '192.0.2.1')
    const wait = plane.nodes.lookUp('secure', NAME, {}, '192.0.2.9')
    t.mock.timers.tick(2500)
    await wait
    assert.equal(plane.nodes.lookUp('secure', NAME, { hasWaited: true }, '192.0.2.9'), undefined)
    assert.deepEqual(plane.ids, ['ep_tn_1'])
    t.mock.timers.reset()
    held.resolve()
  })
})
