import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { SlidingCounters, type Taken } from '../../lib/limits/sliding-counters.ts'
import { KeyOwners } from './key-owners.ts'
import { SharedCounters } from './shared-counters.ts'
import { TestNode, type TestPlane } from './testing/test-worker-peers.ts'

/** Longer than any test. */
const NEVER_MS = 600_000
const once = { capacity: 1, windowMs: 60_000 }

function start(planes: number, { withinMs = NEVER_MS } = {}) {
  const clock = { now: 1000 }
  const node = new TestNode()
  const all = new Map<string, { counters: SharedCounters; plane: TestPlane }>()
  const add = (isQuiet = false): TestPlane => {
    const plane = node.plane(`w${all.size + 1}`)
    const counters = new SharedCounters(plane, { now: () => clock.now, withinMs })
    all.set(plane.self, { counters, plane })
    node.join(plane, { isQuiet })
    return plane
  }
  for (let i = 0; i < planes; i++) add()
  const at = (id: string): SharedCounters => {
    const found = all.get(id)
    assert.ok(found)
    return found.counters
  }
  return { clock, node, all, add, at }
}

const allOf = (taken: readonly (Taken | Promise<Taken>)[]) => Promise.all(taken.map(async (each) => each))

const turn = () => new Promise((resolve) => setImmediate(resolve))

test('a plane alone counts like the counters of one process, without a promise', () => {
  const { at, clock } = start(1)
  const plain = new SlidingCounters({ now: () => clock.now })
  const rate = { capacity: 3, windowMs: 1000 }
  for (let i = 0; i < 50; i++, clock.now += 130) assert.deepEqual(at('w1').take('a', rate), plain.take('a', rate))
})

test('a limit holds for all planes together, exactly, however the takes are spread', async () => {
  for (const spread of [['w1', 'w2', 'w3', 'w4'], ['w2'], ['w1', 'w1', 'w1', 'w4']]) {
    const { node, at } = start(4)
    await node.settle()
    for (const key of ['a', 'b', 'c', 'd', 'e']) {
      const taken = Array.from({ length: 400 }, (_, i) =>
        at(spread[i % spread.length] ?? 'w1').take(key, { capacity: 100, windowMs: 60_000 }),
      )
      await node.settle()
      assert.equal((await allOf(taken)).filter(({ isAllowed }) => isAllowed).length, 100)
    }
  }
})

test('a take that is given back can be taken again at any plane, once', async () => {
  const { node, at } = start(3)
  await node.settle()
  const take = async (plane: string): Promise<boolean> => {
    const taken = at(plane).take('key', once)
    await node.settle()
    return (await taken).isAllowed
  }
  assert.deepEqual([await take('w1'), await take('w2'), await take('w3')], [true, false, false])
  at('w2').giveBack('key', once.windowMs)
  await node.settle()
  assert.deepEqual([await take('w3'), await take('w1'), await take('w2')], [true, false, false])
})

test('takes of one turn are sent together', async () => {
  const { node, at } = start(2)
  await node.settle()
  const taken = Array.from({ length: 300 }, (_, i) => at('w1').take(`key ${i}`, once))
  await node.settle()
  await allOf(taken)
  assert.equal(node.delivered.get('counters.take'), 1)
})

test('a limit of one is exceeded at most once for each plane that comes or leaves, whatever the order of messages', async () => {
  const step = fc.oneof(
    { weight: 8, arbitrary: fc.record({ do: fc.constant('take' as const), n: fc.nat(7), key: fc.nat(5) }) },
    { weight: 10, arbitrary: fc.record({ do: fc.constant('deliver' as const), n: fc.nat(30) }) },
    { weight: 3, arbitrary: fc.record({ do: fc.constant('notice' as const), n: fc.nat(7) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('come' as const) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('leave' as const), n: fc.nat(7) }) },
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 120 }), async (steps) => {
      const { node, all, add } = start(2)
      const staying = [...all.keys()]
      const taken: { key: number; taken: Taken | Promise<Taken> }[] = []
      let isComing: TestPlane | undefined
      const notice = (): void => {
        for (const { plane } of all.values()) plane.changed()
        isComing = undefined
      }
      let moves = 0
      for (const each of steps) {
        // Counts that are being moved may be at neither plane for a moment.
        if (each.do === 'come' || each.do === 'leave') moves++
        if (each.do === 'take') {
          const id = staying[each.n % staying.length] ?? ''
          taken.push({ key: each.key, taken: all.get(id)?.counters.take(`key ${each.key}`, once) ?? refused })
        } else if (each.do === 'deliver') node.deliverOne(each.n)
        else if (each.do === 'notice') [...all.values()][each.n % all.size]?.plane.changed()
        else if (each.do === 'come' && all.size < 6 && !isComing) {
          isComing = add(true)
          staying.push(isComing.self)
          // The new plane knows the others from the start; they learn of it one by one.
          isComing.changed()
        } else if (each.do === 'leave' && staying.length > 1) {
          notice()
          const [id = ''] = staying.splice(each.n % staying.length, 1)
          void all.get(id)?.counters.leave()
        }
        await turn()
      }
      notice()
      await node.settle()
      for (let key = 0; key < 6; key++) {
        const own = await allOf(taken.filter((one) => one.key === key).map((one) => one.taken))
        const passed = own.filter(({ isAllowed }) => isAllowed).length
        const isKept = passed >= Math.min(1, own.length) && passed <= 1 + moves
        assert.ok(isKept, `key ${key} was taken ${passed} times while planes moved ${moves} times`)
      }
    }),
    { numRuns: 150 },
  )
})

const refused: Taken = { isAllowed: false, waitMs: 1 }

test('counts move to a new plane, and from one that leaves', async () => {
  const { node, at, add } = start(1)
  const keys = Array.from({ length: 2500 }, (_, i) => `edge ${i}`)
  for (const key of keys) assert.equal((await at('w1').take(key, once)).isAllowed, true)
  add()
  await node.settle()
  const [held] = await Promise.all([at('w2').counted('edge'), node.settle()])
  assert.equal(held.length, keys.length)
  const left = at('w1').leave()
  await node.settle()
  await left
  node.kill('w1')
  const passed = keys.filter((key) => {
    const taken = at('w2').take(key, once)
    assert.ok(!(taken instanceof Promise))
    return taken.isAllowed
  })
  assert.deepEqual(passed, [])
})

test('when a plane dies, every take is answered, and its counts start again', async () => {
  const { node, at } = start(3)
  await node.settle()
  const rate = { capacity: 10, windowMs: 60_000 }
  const keys = Array.from({ length: 30 }, (_, i) => `key ${i}`)
  const takeAll = () =>
    keys.flatMap((key) => Array.from({ length: 20 }, (_, i) => at(i % 2 ? 'w1' : 'w2').take(key, rate)))
  const under = takeAll()
  await turn()
  node.kill('w3')
  const after = takeAll()
  await node.settle()
  const passed = (await allOf([...under, ...after])).filter(({ isAllowed }) => isAllowed).length
  assert.ok(passed >= 10 * keys.length && passed <= 30 * keys.length, `${passed}`)
})

test('a plane that does not answer delays nobody for long, and gets its counts when it is back', async () => {
  const { node, clock, at } = start(2, { withinMs: 1 })
  await node.settle()
  const owners = new KeyOwners({ self: 'w1' })
  owners.use(['w2'])
  const key = Array.from({ length: 100 }, (_, i) => `key ${i}`).find((each) => owners.ownerAmongPeers(each) === 'w2')
  assert.ok(key)
  node.stalled.add('w2')
  const taken = await at('w1').take(key, once)
  assert.equal(taken.isAllowed, true)
  // While it is silent, this plane counts without waiting, by the same limit.
  assert.deepEqual(at('w1').take(key, once), { isAllowed: false, waitMs: 120_000 })
  node.stalled.clear()
  await node.settle()
  clock.now += 2000
  const [counted] = await Promise.all([at('w1').counted('key'), node.settle()])
  assert.ok(counted.some((each) => each.key === key))
})
