import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { RE2JS } from 're2js'
import { compilePatterns } from './pattern-search.ts'

const PLENTY = 10_000_000

const cases: readonly [patterns: string[], text: string, expected: boolean][] = [
  [[], '', false],
  [[], 'anything', false],
  [['^$'], '', true],
  [['^$'], 'a', false],
  [[''], 'a', true],
  [['(?i)google-images'], 'Google-Images/1', true],
  [['a', 'b'], 'xxb', true],
  [['\\bbot\\b'], 'a bot/1', true],
  [['\\bbot\\b'], 'robots', false],
  [['^b'], 'ab', false],
  [['^b', 'b$'], 'ab', true],
  [['^b|b$'], 'ab', true],
  [['(^b)'], 'ab', false],
  [['^a.c$'], 'a\nc', false],
  [['(?s)^a.c$'], 'a\nc', true],
  [['(?m)^b$'], 'a\nb\nc', true],
  [['(?i)k'], '\u212a', true],
  [['\\p{Greek}+$'], 'αβγ', true],
  [['^.$'], '😀', true],
  [['[^a]'], 'é', true],
  [['x{0}'], '', true],
]

for (const [patterns, text, expected] of cases) {
  test(`${JSON.stringify(patterns)} in ${JSON.stringify(text)}: ${expected}`, () => {
    assert.equal(compilePatterns(patterns)(text, PLENTY), expected)
  })
}

test('matches the same other cases of a character as the engine', () => {
  const cased = [...'kKsSåÅµθϐΩωßẞǅiıİſφﬅ'.split(''), 'ჟ', 'ა', 'ꮿ', '𐐀', '𞤃', '\u212a', '\u212b', '\u2126', '\u0345']
  for (const one of cased) {
    const search = compilePatterns([`(?i)^${one}$`])
    const engine = RE2JS.compile(`(?i)^${one}$`)
    for (const other of new Set([...cased, ...cased.flatMap((each) => [each.toLowerCase(), each.toUpperCase()])])) {
      assert.equal(search(other, PLENTY), engine.test(other), `${one} and ${other}`)
    }
  }
})

test('finds what the engine itself finds', () => {
  const atoms = [
    'a',
    'b',
    'K',
    '.',
    '[^a]',
    '[a-k]',
    '(?i)k',
    '\\b',
    '\\B',
    '^',
    '$',
    '\\pL',
    '\\d',
    '(?m)^',
    'é',
    '\\s',
  ]
  const piece = fc.tuple(fc.constantFrom(...atoms), fc.constantFrom('', '*', '+', '?', '{2}', '{1,3}', '*?'))
  const pattern = fc
    .array(fc.array(piece, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 3 })
    .map((branches) =>
      branches.map((pieces) => pieces.map(([atom, times]) => `(?:${atom})${times}`).join('')).join('|'),
    )
  const text = fc.string({
    unit: fc.constantFrom('a', 'b', 'k', 'K', '\u212a', 'é', '1', ' ', '\n', '😀'),
    maxLength: 12,
  })
  fc.assert(
    fc.property(
      fc.array(pattern, { minLength: 1, maxLength: 3 }),
      fc.array(text, { minLength: 1 }),
      (patterns, texts) => {
        const search = compilePatterns(patterns)
        const engines = patterns.map((each) => RE2JS.compile(each))
        for (const each of texts) {
          assert.equal(
            search(each, PLENTY),
            engines.some((engine) => engine.test(each)),
            `${JSON.stringify(patterns)} in ${JSON.stringify(each)}`,
          )
        }
      },
    ),
    { numRuns: 2000 },
  )
})

test('gives up at the limit instead of taking long', () => {
  const search = compilePatterns(['[ab]*a[ab]{900}c'])
  assert.equal(search('ab'.repeat(4000), 200_000), undefined)
  // A search that was given up leaves no state behind.
  assert.equal(search('c', 200_000), false)
  assert.equal(search(`${'a'.repeat(1000)}c`, PLENTY), true)
})

test('the limit applies to every kind of pattern', () => {
  const hostile = ['(?:a?){400}b', '(?i)k{900}x', '\\pL{900}x', '(?:(?:a*)*){9}b', '(?:.*){300}x', '.*'.repeat(400)]
  for (const pattern of hostile) {
    const search = compilePatterns([pattern])
    for (const text of ['a'.repeat(20_000), 'é'.repeat(20_000), '\u212a'.repeat(20_000)]) {
      search(text, 100_000)
      const began = performance.now()
      search(text, 100_000)
      // About 5 ms, and many seconds without the limit.
      assert.ok(performance.now() - began < 1000, `${pattern} took ${performance.now() - began} ms`)
    }
  }
})
