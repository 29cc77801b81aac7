import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { NameIndex, wildcardAbove } from './name-index.ts'

function indexOf(...names: string[]): NameIndex<string> {
  const index = new NameIndex<string>()
  for (const name of names) index.set(name, name)
  return index
}

const cases: [asked: string, found: string | undefined][] = [
  ['a.e.com', 'a.e.com'],
  ['x.e.com', '*.e.com'],
  ['x.y.e.com', '*.e.com'],
  ['b.a.e.com', '*.a.e.com'],
  ['c.b.a.e.com', '*.a.e.com'],
  ['e.com', undefined],
  ['xe.com', undefined],
  ['com', undefined],
  ['e.com.x', undefined],
  ['*.e.com', '*.e.com'],
  ['', undefined],
  ['.e.com', undefined],
  ['.', undefined],
]
for (const [asked, found] of cases) {
  test(`${asked || 'the empty name'} is served by ${found ?? 'no edge'}`, () => {
    assert.equal(indexOf('a.e.com', '*.e.com', '*.a.e.com').find(asked), found)
  })
}

test('a visitor who requests a literal wildcard gets nothing special', () => {
  assert.equal(indexOf('*.e.com').find('*.e.com'), '*.e.com', 'below e.com, like any name')
  assert.equal(indexOf('*.a.e.com').find('*.e.com'), undefined)
})

test('a wildcard does not answer for a name of the server, and who has exactly that name does', () => {
  const index = new NameIndex<string>((name) => name === 'api.e.com')
  index.set('*.e.com', 'wildcard')
  assert.deepEqual(
    ['api.e.com', 'x.api.e.com', 'b.e.com'].map((name) => index.find(name)),
    [undefined, 'wildcard', 'wildcard'],
  )
  index.set('api.e.com', 'stored')
  assert.equal(index.find('api.e.com'), 'stored')
})

test('names can be replaced and removed', () => {
  const index = indexOf('a.e.com', '*.e.com')
  assert.equal(index.size, 2)
  index.set('a.e.com', 'other')
  assert.equal(index.find('a.e.com'), 'other')
  assert.equal(index.get('*.e.com'), '*.e.com')
  assert.equal(index.delete('a.e.com'), true)
  assert.equal(index.delete('a.e.com'), false)
  assert.equal(index.find('a.e.com'), '*.e.com')
  assert.equal(index.delete('*.e.com'), true)
  assert.equal(index.find('a.e.com'), undefined)
  assert.equal(index.size, 0)
})

test('agrees with a linear search', () => {
  const label = fc.constantFrom('a', 'b', 'com')
  const name = fc.array(label, { minLength: 1, maxLength: 5 }).map((labels) => labels.join('.'))
  const pattern = fc.tuple(fc.boolean(), name).map(([isWild, text]) => (isWild ? `*.${text}` : text))
  fc.assert(
    fc.property(fc.array(pattern, { maxLength: 20 }), name, (patterns, asked) => {
      const fitting = patterns.filter((each) => each.startsWith('*.') && asked.endsWith(each.slice(1)))
      const longest = fitting.sort((a, b) => b.length - a.length)[0]
      assert.equal(indexOf(...patterns).find(asked), patterns.includes(asked) ? asked : longest)
    }),
  )
})

test('finds the longest wildcard of an edge above a name', () => {
  const names = ['*.a.test', '*.b.a.test', 'x.a.test']
  const cases: [string, string | undefined][] = [
    ['y.a.test', '*.a.test'],
    ['y.z.a.test', '*.a.test'],
    ['y.b.a.test', '*.b.a.test'],
    ['x.a.test', undefined],
    ['a.test', undefined],
    ['ya.test', undefined],
  ]
  for (const [name, wildcard] of cases) assert.equal(wildcardAbove(name, names), wildcard)
})
