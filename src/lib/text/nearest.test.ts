import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { nearest } from './nearest.ts'

const known = ['description', 'metadata', 'hostports', 'acl', 'owner_id']

const cases: [name: string, meant: string | undefined][] = [
  ['desciption', 'description'],
  ['DESCRIPTION', 'description'],
  ['metdata', 'metadata'],
  ['hostport', 'hostports'],
  ['owner-id', 'owner_id'],
  ['ownerId', 'owner_id'],
  ['acls', 'acl'],
  ['', undefined],
  ['something_else_entirely', undefined],
  ['zzz', undefined],
  ['\u{1f600}', undefined],
  ['x'.repeat(1_000_000), undefined],
]

for (const [name, meant] of cases) {
  test(`\`${name.slice(0, 30)}\` most likely means ${meant ?? 'nothing known'}`, () => {
    assert.equal(nearest(name, known), meant)
  })
}

test('with no known names there is no nearest one', () => {
  assert.equal(nearest('a', []), undefined)
})

test('one typing error in a name of four letters or more is recognised', () => {
  const edit = fc.record({
    at: fc.nat(8),
    kind: fc.constantFrom('drop', 'swap', 'add'),
    letter: fc.constantFrom('q', 'z'),
  })
  fc.assert(
    fc.property(fc.constantFrom(...known.filter((name) => name.length > 3)), edit, (name, { at, kind, letter }) => {
      const i = at % name.length
      const typed = name.slice(0, i) + (kind === 'drop' ? '' : letter) + name.slice(kind === 'add' ? i : i + 1)
      assert.equal(nearest(typed, known), name)
    }),
  )
})
