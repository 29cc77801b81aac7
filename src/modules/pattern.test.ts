import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { RE2JS } from 're2js'
import { BadPattern, patternSize } from './pattern.ts'

const patterns = [
  'abc',
  '^/v1/(.*)$',
  '(?i)bot|crawler|spider',
  '(?:a{10}b{20}){20}',
  '(?P<x>[a-z]{3,9})\\d{2,}',
  '[]a]{100}[^]b]{100}[[:alpha:]\\]]{100}',
  '\\p{Greek}{100}\\x{41}{100}\\Q(a{9}\\E{50}',
  'a{999}'.repeat(9),
]

for (const pattern of patterns) {
  test(`knows the size of ${pattern.slice(0, 60)}`, () => {
    const size = RE2JS.compile(pattern).programSize()
    const guess = patternSize(pattern)
    assert.ok(guess * 2 + 5 >= size && guess <= size * 2 + 20, `guessed ${guess} for ${size}`)
  })
}

test('refuses what is too costly without compiling it', () => {
  for (const pattern of [`(?:${'a'.repeat(1000)}){1000}`, 'a{1000}'.repeat(140), `((${'[a]'.repeat(300)}){9}){99}`]) {
    assert.throws(() => patternSize(pattern), /too costly/)
  }
  assert.throws(() => patternSize('a'.repeat(1025)), /at most 1024 bytes/)
})

test('any pattern is taken or refused, and what is taken is small', () => {
  const parts = [
    'a',
    '(',
    ')',
    '(?:',
    '[',
    ']',
    '^',
    '\\',
    'Q',
    'E',
    '{9}',
    '{99}',
    '{5,90}',
    '{2,}',
    '*',
    '|',
    '[:alpha:]',
    'p{L}',
    '-',
  ]
  const soup = fc.array(fc.constantFrom(...parts), { maxLength: 40 }).map((some) => some.join(''))
  fc.assert(
    fc.property(soup, (pattern) => {
      try {
        patternSize(pattern)
      } catch (error) {
        if (error instanceof BadPattern) return
        throw error
      }
      assert.ok(RE2JS.compile(pattern).programSize() <= 3 * 10_000)
    }),
    { numRuns: 2000 },
  )
})
