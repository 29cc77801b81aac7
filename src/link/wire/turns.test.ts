import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { type QueueMember, Turns } from './turns.ts'

interface Named extends QueueMember {
  readonly name: number
}

function named(name: number): Named {
  return { name, queues: 0 }
}

test('each member is in the queue once, at the place where it was added first', () => {
  const turns = new Turns<Named>(1)
  const [a, b] = [named(1), named(2)]
  for (const one of [a, b, a]) turns.add(one)
  assert.equal(turns.size, 2)
  assert.equal(turns.shift(), a)
  turns.add(a)
  assert.deepEqual(turns.takeAll(), [b, a])
  assert.equal(turns.shift(), undefined)
})

test('a member that leaves one queue keeps its place in another', () => {
  const [first, second] = [new Turns<Named>(1), new Turns<Named>(2)]
  const one = named(1)
  for (const turns of [first, second]) turns.add(one)
  first.remove(one)
  assert.deepEqual([first.size, second.size], [0, 1])
  first.add(one)
  assert.equal(second.shift(), one)
  assert.equal(first.shift(), one)
  assert.equal(one.queues, 0)
})

test('random steps give the same order as a Set', () => {
  const step = fc.record({
    kind: fc.oneof(
      { weight: 12, arbitrary: fc.constant('add' as const) },
      { weight: 6, arbitrary: fc.constant('shift' as const) },
      { weight: 3, arbitrary: fc.constant('remove' as const) },
    ),
    name: fc.nat({ max: 99 }),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 400, size: 'max' }), (steps) => {
      const all = Array.from({ length: 100 }, (_, name) => named(name))
      const turns = new Turns<Named>(1)
      const model = new Set<Named>()
      for (const { kind, name } of steps) {
        const one = all[name] ?? assert.fail()
        if (kind === 'add') {
          turns.add(one)
          model.add(one)
        } else if (kind === 'remove') {
          turns.remove(one)
          model.delete(one)
        } else {
          const [first] = model
          assert.equal(turns.shift(), first)
          if (first) model.delete(first)
        }
        assert.equal(turns.size, model.size)
        assert.equal(one.queues, model.has(one) ? 1 : 0)
      }
      assert.deepEqual(turns.takeAll(), [...model])
      assert.equal(turns.size, 0)
    }),
  )
})

test('a queue that was long keeps none of its former members alive, and still works', () => {
  setFlagsFromString('--expose-gc')
  const collect: () => void = runInNewContext('gc')
  const turns = new Turns<Named>(1)
  const past = [...comeAndGo(turns, 500), ...comeAndGo(turns, 3000)]
  assert.equal(turns.size, 0)
  return new Promise<void>((done) => {
    // A WeakRef keeps its target alive until the turn in which it was made is over.
    setImmediate(() => {
      collect()
      assert.equal(past.filter((each) => each.deref() !== undefined).length, 0)
      const one = named(1)
      turns.add(one)
      assert.equal(turns.shift(), one)
      done()
    })
  })
})

/** Adds `count` members; removes every third from the middle, the others from the front. */
function comeAndGo(turns: Turns<Named>, count: number): WeakRef<Named>[] {
  const all = Array.from({ length: count }, (_, name) => named(name))
  for (const one of all) turns.add(one)
  for (const one of all) if (one.name % 3 === 1) turns.remove(one)
  for (const one of all) if (one.name % 3 !== 1) assert.equal(turns.shift(), one)
  return all.map((one) => new WeakRef(one))
}
