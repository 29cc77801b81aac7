import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { RE2JS } from 're2js'
import { BadPattern, checkPattern } from './pattern.ts'
import { patternPrice } from './pattern-price.ts'

const patterns = [
  'abc',
  '^/v1/(.*)$',
  '(?i)bot|crawler|spider',
  '(?:a{10}b{20}){20}',
  '(?P<x>[a-z]{3,9})\\d{2,}',
  '[]a]{100}[^]b]{100}[[:alpha:]\\]]{100}',
  '\\x{41}{100}\\Q(a{9}\\E{50}',
  'a{999}'.repeat(9),
]

for (const pattern of patterns) {
  test(`knows the size of ${pattern.slice(0, 60)}`, () => {
    const size = RE2JS.compile(pattern).programSize()
    const guess = checkPattern(pattern)
    assert.ok(guess * 2 + 5 >= size && guess <= size * 2 + 20, `guessed ${guess} for ${size}`)
  })
}

test('refuses a costly pattern without compiling it', () => {
  for (const pattern of [`(?:${'a'.repeat(1000)}){1000}`, 'a{1000}'.repeat(140), `((${'[a]'.repeat(300)}){9}){99}`]) {
    assert.throws(() => checkPattern(pattern), /too costly/)
  }
  assert.throws(() => checkPattern('a'.repeat(1025)), /at most 1024 bytes/)
})

/** Each took 0.1 to 0.6 s to compile to a handful of instructions. */
const small: readonly (readonly [what: string, pattern: string])[] = [
  ['a class of many classes', `[${'\\pL'.repeat(340)}]`],
  ['a class of many classes that others are left out of', `[^${'\\PL'.repeat(340)}]`],
  ['classes beside each other', `${'\\pL|'.repeat(250)}a`],
  ['classes one after the other', '\\pL'.repeat(340)],
  ['classes that are repeated', '\\pL{50}'.repeat(100)],
  ['classes whose other case counts', `(?i)[${'\\p{Lu}'.repeat(160)}]`],
  ['ranges whose other case counts', `(?i)[${'B-\\x{1e942}'.repeat(80)}]`],
  ['ranges of other characters whose other case counts', `(?is)[${'B-\u{1e942}'.repeat(100)}]`],
  ['characters beyond ASCII whose other case counts', `(?i)${'\u01c5'.repeat(500)}`],
]

for (const [what, pattern] of small) {
  test(`refuses ${what} by their content`, () => {
    assert.throws(() => checkPattern(pattern), /too costly/)
  })
}

test('accepts the classes that people write', () => {
  for (const pattern of [
    '[\\p{L}\\p{N}_-]{1,64}',
    '(?i)[a-z0-9]{1,63}(\\.[a-z0-9]{1,63})*',
    '\\p{Greek}{100}',
    '(?i)[\\pL]+/[0-9.]+',
    '(?i)größe|länge',
    '^[\\x20-\\x{10ffff}]*$',
  ]) {
    assert.ok(checkPattern(pattern) < 10_000, pattern)
  }
})

test('the price of a pattern is at least the size of its program', () => {
  const atom = fc.constantFrom(
    'a',
    '.',
    '\\d',
    '[a-f]',
    '[^\\pL]',
    '\\p{Han}',
    '(?i)k',
    '\\x{101}',
    '[[:alpha:]-]',
    '\\Qa.b\\E',
  )
  const pattern = fc.array(fc.tuple(atom, fc.constantFrom('', '*', '{3}', '{2,5}', '|')), {
    minLength: 1,
    maxLength: 8,
  })
  fc.assert(
    fc.property(pattern, (parts) => {
      const text = parts.map(([each, times]) => `(?:${each})${times}`).join('')
      const size = RE2JS.compile(text).programSize()
      assert.ok(patternPrice(text) * 2 + 5 >= size, `${text}: ${patternPrice(text)} for ${size}`)
    }),
    { numRuns: 1000 },
  )
})

test('any pattern is accepted or refused, and an accepted one is small', () => {
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
        checkPattern(pattern)
      } catch (error) {
        if (error instanceof BadPattern) return
        throw error
      }
      assert.ok(RE2JS.compile(pattern).programSize() <= 3 * 10_000)
    }),
    { numRuns: 2000 },
  )
})
