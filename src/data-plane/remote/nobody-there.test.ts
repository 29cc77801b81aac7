/** Names that nobody has: a visitor is told so by a look-up that began after its arrival, never by an earlier answer. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { AGED_MS, isOffline, placeOf, RemotePlane, request, settled } from './testing/test-node-tunnels.ts'

let plane: RemotePlane
beforeEach(() => {
  plane = new RemotePlane()
})
afterEach(() => plane.nodes.close())

const NAME = 'a.example.com'
const PLACE = `secure:${NAME}`

/** Holds back answers until the returned function is called. */
function holdAnswers(): () => void {
  const { promise, resolve } = Promise.withResolvers<void>()
  plane.held = promise
  return () => {
    plane.held = undefined
    resolve()
  }
}

describe('a name that nobody has', () => {
  test('is found by the next visitor when somebody has it', async () => {
    assert.equal(await plane.look(NAME), true)
    assert.deepEqual(plane.ids, [])
    plane.store(placeOf(PLACE))
    assert.equal(await plane.look(NAME), true)
    assert.deepEqual(plane.ids, ['ep_tn_1'])
  })

  test('is looked up once more for all who come during a look-up', async () => {
    const release = holdAnswers()
    const first = plane.look(NAME)
    plane.store(placeOf(PLACE))
    const later = [plane.look(NAME), plane.look(NAME)]
    release()
    await first
    assert.deepEqual([plane.asked.length, plane.ids], [1, []])
    await Promise.all(later)
    assert.deepEqual([plane.asked.length, plane.ids], [2, ['ep_tn_1']])
  })

  test('is not looked up once more when somebody was found', async () => {
    plane.store(placeOf(PLACE))
    const release = holdAnswers()
    const visits = [plane.look(NAME), plane.look(NAME)]
    release()
    await Promise.all(visits)
    assert.equal(plane.asked.length, 1)
  })

  test('is found although a dial found that its former tunnel is gone', async () => {
    plane.store(placeOf(PLACE))
    await plane.look(NAME)
    plane.stored.clear()
    plane.online.clear()
    assert.ok(isOffline(await plane.nodes.dial(request('tn_1', 'v1'))))
    assert.deepEqual(plane.ids, [])
    plane.store(placeOf(PLACE, { tunnelId: 'tn_2' }))
    assert.equal(await plane.look(NAME), true)
    assert.deepEqual(plane.ids, ['ep_tn_2'])
  })

  test('is looked up once for a visitor', async () => {
    const wait = plane.nodes.lookUp('secure', NAME)
    assert.ok(wait)
    await wait
    assert.equal(plane.nodes.lookUp('secure', NAME, { hasWaited: true }), undefined)
    assert.equal(plane.asked.length, 1)
  })

  test('is looked up once in a moment, however many visitors come', async () => {
    await plane.look(NAME)
    const crowd = Array.from({ length: 100 }, () => plane.look(NAME))
    await settled()
    assert.equal(plane.asked.length, 1, 'not at once')
    await Promise.all(crowd)
    assert.equal(plane.asked.length, 2)
  })

  test('is not looked up again at once while the database is down', async () => {
    plane.isAway = true
    assert.equal(await plane.look(NAME), true)
    assert.equal(await plane.look(NAME), false)
    plane.now += AGED_MS
    assert.equal(await plane.look(NAME), true)
    assert.equal(plane.asked.length, 2)
  })

  test('and that is below a wildcard of this node is not looked up again at once', async () => {
    plane.covered.add(NAME)
    assert.equal(await plane.look(NAME), true)
    assert.equal(await plane.look(NAME), false)
    plane.store(placeOf(PLACE))
    plane.now += AGED_MS
    assert.equal(await plane.look(NAME), true)
    assert.deepEqual([plane.asked.length, plane.ids], [2, ['ep_tn_1']])
  })
})
