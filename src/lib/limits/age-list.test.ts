import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Aged, AgeList } from './age-list.ts'

interface Thing extends Aged<Thing> {
  readonly name: number
}

const thing = (name: number): Thing => ({ name, older: undefined, newer: undefined })

function fromOldest({ oldest }: AgeList<Thing>): Thing[] {
  const found: Thing[] = []
  for (let each = oldest; each; each = each.newer) {
    assert.equal(each.older, found.at(-1))
    found.push(each)
  }
  return found
}

test('after any additions and removals it has the same members in the same order as a Set', () => {
  const step = fc.record({ isAdd: fc.boolean(), name: fc.integer({ min: 0, max: 7 }) })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const things = Array.from({ length: 8 }, (_, name) => thing(name))
      const list = new AgeList<Thing>()
      const model = new Set<Thing>()
      for (const { isAdd, name } of steps) {
        const each = things[name] ?? thing(name)
        if (isAdd) {
          list.add(each)
          model.add(each)
        } else assert.equal(list.delete(each), model.delete(each))
        // Not deepEqual, which would follow the links of each.
        const names = [...model].map((one) => one.name)
        assert.deepEqual(
          fromOldest(list).map((one) => one.name),
          names,
        )
        assert.deepEqual(
          Array.from(list, (one) => one.name),
          names,
        )
        assert.equal(list.size, model.size)
        for (const one of things) assert.equal(list.has(one), model.has(one))
      }
    }),
  )
})

test('a removed member has no links, wherever in the list it was', () => {
  for (const place of [0, 1, 2]) {
    const things = [thing(0), thing(1), thing(2)]
    const list = new AgeList<Thing>()
    for (const each of things) list.add(each)
    const [left] = things.slice(place)
    assert.ok(left)
    list.delete(left)
    assert.deepEqual(left, thing(place))
  }
})
