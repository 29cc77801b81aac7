import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { IdSource, isId, randomText } from './ids.ts'

const clocks: [what: string, now: (call: number) => number][] = [
  ['goes on', (call) => 1_700_000_000_000 + call],
  ['stands still', () => 1_700_000_000_000],
  ['jumps back by a day', (call) => 1_700_000_000_000 + call - (call > 50 ? 86_400_000 : 0)],
  ['swings', (call) => 1_700_000_000_000 + (call % 7) * 1000],
  ['goes backwards', (call) => 1_700_000_000_000 - call],
  ['starts in 1970', () => 0],
]

for (const [what, now] of clocks) {
  test(`ids increase strictly under a clock that ${what}`, () => {
    let call = 0
    const ids = new IdSource({ now: () => now(call++) })
    increases(Array.from({ length: 500 }, () => ids.next('ak_')))
  })
}

test('ids increase strictly whatever the clock does and whatever the random bytes are', () => {
  const steps = fc.array(fc.record({ now: fc.nat(2 ** 42), byte: fc.nat(255) }), { minLength: 2, maxLength: 50 })
  fc.assert(
    fc.property(steps, (steps) => {
      let at = 0
      const step = () => steps[at] ?? { now: 0, byte: 0 }
      const ids = new IdSource({ now: () => step().now, random: (bytes) => Buffer.alloc(bytes, step().byte) })
      increases(
        steps.map((_, i) => {
          at = i
          return ids.next('')
        }),
      )
    }),
  )
})

test('more than 65,536 ids in one millisecond still increase, and so do those of the next millisecond', () => {
  let now = 1_700_000_000_000
  const ids = new IdSource({ now: () => now })
  const made = Array.from({ length: 3 * 65_536 }, () => ids.next('op_'))
  now += 1
  made.push(ids.next('op_'))
  increases(made)
})

test('ids of one moment sort after those of the moment before, even from another source', () => {
  const at = (now: number, byte: number) =>
    new IdSource({ now: () => now, random: (bytes) => Buffer.alloc(bytes, byte) }).next('tn_')
  assert.ok(at(1_700_000_000_001, 0) > at(1_700_000_000_000, 255))
})

test('an id is its prefix and 27 base62 characters', () => {
  const id = new IdSource({ now: Date.now }).next('edghtsrt_')
  assert.match(id, /^edghtsrt_[0-9A-Za-z]{27}$/)
  assert.ok(isId(id, 'edghtsrt_'))
})

test('random text has 27 base62 characters and does not repeat', () => {
  const made = Array.from({ length: 1000 }, randomText)
  for (const text of made) assert.match(text, /^[0-9A-Za-z]{27}$/)
  assert.equal(new Set(made).size, made.length)
})

const tail = '2NnKzWqYw8sDvGmXtFhRc5bLpAe'
const notIds: [what: string, text: string][] = [
  ['nothing', ''],
  ['the prefix alone', 'ak_'],
  ['the tail alone', tail],
  ['another prefix', `ep_${tail}`],
  ['a prefix in other letters', `AK_${tail}`],
  ['a longer prefix that ends the same', `xak_${tail}`],
  ['26 characters', `ak_${tail.slice(1)}`],
  ['28 characters', `ak_${tail}0`],
  ['a line break behind', `ak_${tail}\n`],
  ['a line break as the last character', `ak_${tail.slice(1)}\n`],
  ['a dash inside', `ak_-${tail.slice(1)}`],
  ['an underscore inside', `ak__${tail.slice(1)}`],
  ['a letter outside of ASCII', `ak_é${tail.slice(1)}`],
  ['a digit of another script', `ak_٣${tail.slice(1)}`],
  ['a space in front', ` ak_${tail}`],
]

test(`\`${tail}\` after its prefix is an id`, () => {
  assert.ok(isId(`ak_${tail}`, 'ak_'))
})

for (const [what, text] of notIds) {
  test(`is not an id: ${what}`, () => {
    assert.equal(isId(text, 'ak_'), false)
  })
}

function increases(ids: readonly string[]): void {
  for (const [i, id] of ids.entries()) assert.ok(i === 0 || id > (ids[i - 1] ?? ''), `${ids[i - 1]} then ${id}`)
}
