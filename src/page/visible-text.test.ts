import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cutText, visibleText } from './visible-text.ts'

const cases: [what: string, given: string, shown: string][] = [
  ['markup stays text', '<img src=x onerror=alert(1)>', '<img src=x onerror=alert(1)>'],
  ['a change of direction is shown', 'gpj.\u202eexe', 'gpj.‹U+202E›exe'],
  ['isolates and direction marks are shown', '\u2066a\u2069\u200f', '‹U+2066›a‹U+2069›‹U+200F›'],
  ['a character without a width is shown', 'pay\u200bpal', 'pay‹U+200B›pal'],
  ['controls are shown, line breaks and tabs stay', 'a\u0000\u001b[2J\n\tb', 'a‹U+0000›‹U+001B›[2J\n\tb'],
  ['invisible tag characters are shown', 'a\u{e0041}', 'a‹U+E0041›'],
  ['a lone surrogate is shown', 'a\ud83d', 'a‹U+D83D›'],
  ['letters of all scripts stay', 'Ünïcödé 日本 עברית 🚪', 'Ünïcödé 日本 עברית 🚪'],
]

for (const [what, given, shown] of cases) test(what, () => assert.equal(visibleText(given), shown))

test('a long text is cut, and never inside a character', () => {
  assert.deepEqual(cutText('abc', 3), { text: 'abc', left: 0 })
  assert.deepEqual(cutText('abcd', 3), { text: 'abc', left: 1 })
  assert.deepEqual(cutText('ab🚪cd', 3), { text: 'ab', left: 4 })
  const { text, left } = cutText('x'.repeat(1_000_000), 2000)
  assert.deepEqual([text.length, left], [2000, 998_000])
})
