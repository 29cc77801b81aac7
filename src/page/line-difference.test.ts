import assert from 'node:assert/strict'
import { test } from 'node:test'
import { foldSame, lineDifference } from './line-difference.ts'

/** `a` in both, `-a` in the first alone, `+b` in the second alone, `a~b` changed. */
function drawn(first: string, second: string): string[] {
  return lineDifference(first, second).map((pair) => {
    if (pair.isSame) return pair.first ?? ''
    if (pair.second === undefined) return `-${pair.first}`
    return pair.first === undefined ? `+${pair.second}` : `${pair.first}~${pair.second}`
  })
}

for (const [first, second, expected] of [
  ['', '', []],
  ['a', 'a', ['a']],
  ['a\nb\nc', 'a\nx\nc', ['a', 'b~x', 'c']],
  ['a\nb', 'a\nx\nb', ['a', '+x', 'b']],
  ['a\nb\nc', 'a\nc', ['a', '-b', 'c']],
  ['a\nb\nc\nd', 'b\nx\nd\ne', ['-a', 'b', 'c~x', 'd', '+e']],
  ['', 'a', ['+a']],
  ['a\r\nb', 'a\nb', ['a', 'b']],
] as const) {
  test(`${JSON.stringify(first)} and ${JSON.stringify(second)}`, () => {
    assert.deepEqual(drawn(first, second), expected)
  })
}

test('texts of very many different lines are compared by place', () => {
  const lines = (letter: string) => Array.from({ length: 3000 }, (_, i) => `${letter}${i}`).join('\n')
  const pairs = lineDifference(lines('a'), lines('b'))
  assert.deepEqual([pairs.length, pairs.every(({ isSame }) => !isSame)], [3000, true])
})

test('equal lines far from a difference are folded', () => {
  const lines = Array.from({ length: 20 }, (_, i) => `${i}`)
  const changed = lines.with(10, 'x')
  const folded = foldSame(lineDifference(lines.join('\n'), changed.join('\n')))
  assert.deepEqual(
    folded.map((each) => ('folded' in each ? each.folded : each.first)),
    [7, '7', '8', '9', '10', '11', '12', '13', 6],
  )
  assert.deepEqual(foldSame(lineDifference('a\nb', 'a\nb')), [{ folded: 2 }])
})
